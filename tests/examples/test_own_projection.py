"""The example of a user's projection runs, counts, and survives being killed."""

import importlib.util
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from psycopg import sql

from horolog import Cron, Every, LoggedEvent, Run, Scheduler, Worker
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.testing import SimulatedScheduler, feed

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HOROLOG = [sys.executable, "-m", "horolog.interface.cli.main"]


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_projection", EXAMPLES / "own_projection.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def own_database(database_url: str) -> Generator[str]:
    """A database of the test's own, since the example's tables have names of their own."""
    name = f"t_{secrets.token_hex(5)}"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        info = connection.info
        yield f"postgresql://{info.user}@/{name}?host={info.host}&port={info.port}"
        drop = sql.SQL("DROP DATABASE {} WITH (FORCE)")
        connection.execute(drop.format(sql.Identifier(name)))


def test_the_example_reports_what_ran() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "own_projection.py"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = [line.split(" ", 1)[1] for line in done.stdout.splitlines()]
    assert lines[0] == "echo     5 runs, 0.0 s"
    assert lines[1].startswith("sleep    1 runs, 0.")


def test_it_is_tested_by_feeding_it_a_simulated_life(
    example: ModuleType, own_database: str
) -> None:
    with SimulatedScheduler(takes={"bill": 2.5}) as scheduler:
        scheduler.register("bill", schedule=Cron("0 2 * * *", "UTC"))
        scheduler.register("mail", schedule=Cron("0 3 * * *", "UTC", limit=1))
        scheduler.advance(days=3)
        events: list[LoggedEvent] = []
        while page := scheduler.log(after=events[-1].position if events else 0):
            events += page
    with psycopg.connect(own_database) as connection:
        assert feed(example.Costs(), events, connection) > 0
        rows = connection.execute("SELECT name, sum(runs)::int, sum(seconds) FROM reports.costs"
                                  " GROUP BY name ORDER BY name").fetchall()  # fmt: skip
        assert rows == [("bill", 3, 7.5), ("mail", 1, 0.0)]
        connection.rollback()


def test_the_process_may_be_killed_at_any_moment(own_database: str, namespace: str) -> None:
    database = Database(own_database, namespace)
    migrate(database)
    environment = os.environ | {
        "HOROLOG_DATABASE_URL": own_database,
        "HOROLOG_NAMESPACE": namespace,
    }
    command = [*HOROLOG, "projection", "run", "own_projection:Costs"]
    with Scheduler(own_database, namespace=namespace) as scheduler:
        for round_ in range(3):
            process = subprocess.Popen(command, cwd=EXAMPLES, env=environment)
            for _ in range(40):
                scheduler.register("bill", schedule=Every(3600))
            if round_:
                wait_for_rows(database, 10 * round_)
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = subprocess.run([*command, "--once", "--json"], cwd=EXAMPLES, env=environment,
                              check=True, capture_output=True, text=True)  # fmt: skip
        assert '"projection": "costs"' in done.stdout
        assert count(database) == 120
        assert subprocess.run([*command, "--once"], cwd=EXAMPLES, env=environment, check=True)
        assert count(database) == 120
    database.close()


def count(database: Database) -> int:
    return database.query(database.sql("SELECT count(*) FROM reports.handlers"))[0][0]


def wait_for_rows(database: Database, wanted: int) -> None:
    deadline = time.monotonic() + 20
    exists = database.sql("SELECT to_regclass('reports.handlers') IS NOT NULL")
    while not database.query(exists)[0][0] or count(database) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_projection_of_the_document_counts_what_failed(own_database: str) -> None:
    document = (ROOT / "docs" / "asking-the-log.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    place: dict[str, Any] = {}
    exec(program, place)
    worker = Worker()

    @worker.handles("bill")
    def bill(run: Run) -> None:  # pyright: ignore[reportUnusedFunction]
        if run.attempt == 1:
            raise ConnectionError("away")

    with SimulatedScheduler(worker) as scheduler:
        scheduler.register("bill", schedule=Cron("0 2 * * *", "UTC"))
        scheduler.advance(days=2)
        events = scheduler.log()
    with psycopg.connect(own_database) as connection:
        assert feed(place["Failures"](), events, connection) == 2
        assert (
            connection.execute("SELECT kind, n FROM failures").fetchall() == [("transport", 1)] * 2
        )
        connection.rollback()


def test_the_commands_of_the_document_exist() -> None:
    document = (ROOT / "docs" / "asking-the-log.md").read_text()
    told = re.findall(r"`horolog ([a-z]+(?: [a-z]+)?)", document)
    assert len(told) > 8
    for command in told:
        done = subprocess.run(
            [*HOROLOG, *command.split(), "--help"], capture_output=True, check=True
        )
        assert b"Usage: horolog" in done.stdout
