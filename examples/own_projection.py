"""A projection of one's own: what each handler's runs cost a day, kept in one's own tables.

    python examples/own_projection.py            # embedded servers, some jobs, the report
    horolog projection run own_projection:Costs  # in examples/: a process beside a running system

The place in the log moves in the transaction of the rows, so each run is counted exactly once, over
any crash. `horolog doctor` says how far it is behind the log. In a test: `horolog.testing.feed`.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import psycopg

from horolog import HorologError, LoggedEvent, Once, Projection, Scheduler, run_projection
from horolog.domain.job_events import Registered
from horolog.domain.occurrence_events import Claimed, Succeeded

T = TypeVar("T")


class Costs(Projection):
    """Successful runs and their seconds by day and handler, in the schema ``reports``."""

    name = "costs"
    topics = ("job.registered", "occurrence.claimed", "occurrence.succeeded")

    def set_up(self, view: Any) -> None:
        view.execute("CREATE SCHEMA IF NOT EXISTS reports")
        view.execute(
            "CREATE TABLE IF NOT EXISTS reports.handlers (job uuid PRIMARY KEY, name text NOT NULL)"
        )
        # A run's success does not say which job's it is; its claim does.
        view.execute(
            "CREATE TABLE IF NOT EXISTS reports.open_runs (run uuid PRIMARY KEY, job uuid NOT NULL)"
        )
        view.execute(
            "CREATE TABLE IF NOT EXISTS reports.costs (day date, name text, runs int NOT NULL,"
            " seconds float8 NOT NULL, PRIMARY KEY (day, name))"
        )

    def apply(self, event: LoggedEvent, view: Any) -> None:
        match event.event:
            case Registered(definition=definition):
                view.execute(
                    "INSERT INTO reports.handlers VALUES (%s, %s)", (event.stream, definition.name)
                )
            case Claimed(job_id=job_id):
                view.execute(
                    "INSERT INTO reports.open_runs VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    (event.stream, job_id),
                )
            case Succeeded(seconds=seconds):
                view.execute(
                    "WITH ended AS (DELETE FROM reports.open_runs WHERE run = %s RETURNING job)"
                    " INSERT INTO reports.costs AS c"
                    " SELECT %s::date, h.name, 1, %s FROM ended JOIN reports.handlers h USING (job)"
                    " ON CONFLICT (day, name) DO UPDATE"
                    " SET runs = c.runs + 1, seconds = c.seconds + excluded.seconds",
                    (event.stream, event.recorded_at, seconds),
                )
            case _:
                pass

    def tear_down(self, view: Any) -> None:
        view.execute("DROP SCHEMA reports CASCADE")


def main() -> None:
    """Some jobs on servers of their own (`horolog dev` in a temporary home), then the report."""
    with tempfile.TemporaryDirectory() as home, developing(home):
        scheduler = wait_for(lambda: Scheduler(home=home, namespace="horolog").__enter__())
        with scheduler:
            for number in range(5):
                scheduler.register("echo", schedule=Once(now()), payload={"n": number})
            scheduler.register("sleep", schedule=Once(now()), payload={"seconds": 0.2})
            wait_for(lambda: len(scheduler.occurrences(state="succeeded")) == 6)
            run_projection(Costs(), scheduler, until=scheduler.position())
            with psycopg.connect(scheduler.settings.database_url()) as connection:
                for row in connection.execute("SELECT * FROM reports.costs ORDER BY day, name"):
                    print("{} {:<8} {} runs, {:.1f} s".format(*row))


@contextmanager
def developing(home: str) -> Generator[None]:
    """`horolog dev`: Postgres, NATS, a scanner and a worker with sample handlers."""
    command = [sys.executable, "-m", "horolog.interface.cli.main", "dev", "--home", home]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for(what: Callable[[], T]) -> T:
    """The first answer that is something; a system that is starting is given its time."""
    for _ in range(600):
        with suppress(HorologError):
            if answer := what():
                return answer
        time.sleep(0.1)
    raise SystemExit("the servers did not start")


def now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    main()
