"""An upgrade as it is done: the schema first, under load, then the processes one by one.

    the release before   migrate, scanner, worker, load ────────────── stopped ─┐
    this release                     migrate, scanner, worker, load ────────────┴─ account

`make upgrade SECONDS=60` runs it for longer and prints the figures.
"""

import argparse
import json
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from tests.faults.system.account import account
from tests.faults.system.processes import Process
from tests.faults.system.system import EFFECTS, ONE_EFFECT, SCANNER, WORKER, System
from tests.faults.upgrade.releases import ROOT, environment, previous_release, run

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres import compatibility
from horolog.infrastructure.postgres import migrate as migrating
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migration_files import Migration, migrations
from horolog.interface.projections import Projections
from horolog.interface.settings import Settings

NEXT_TABLES = """-- horolog: admits {admits}
ALTER TABLE :schema.next_runs ADD COLUMN colour text;
ALTER TABLE :schema.jobs ADD COLUMN colour text;
ALTER TABLE :schema.occurrence_events ADD COLUMN colour text;
CREATE TABLE :schema.coloured (id uuid PRIMARY KEY);
"""
NEXT_ONLINE = """-- horolog: admits {admits}
-- horolog: online
-- step
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_coloured ON :schema.jobs (colour)
-- step until none
INSERT INTO :schema.coloured SELECT j.id FROM :schema.jobs j
WHERE NOT EXISTS (SELECT FROM :schema.coloured c WHERE c.id = j.id) LIMIT 20
"""
NEXT = (NEXT_TABLES, NEXT_ONLINE)
"""What a release after this one might do to the hottest tables, on top of what this one does."""


@dataclass
class Upgrade:
    """What was seen. ``problems`` is empty where all went as it should."""

    admitted: bool
    migrated_s: float = 0.0
    slowest_s: float = 0.0
    old_runs: int = 0
    new_runs: int = 0
    occurrences: int = 0
    problems: Sequence[str] = ()


class Load:
    """A client of one release."""

    def __init__(self, tree: Path, settings: Settings, pause_s: float) -> None:
        program = Path(__file__).with_name("load_program.py")
        self._popen = subprocess.Popen(
            [sys.executable, str(program), settings.database_url(), settings.namespace,
             str(pause_s)],
            cwd=tree, env=environment(tree, {}), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def end(self) -> tuple[list[UUID], float]:
        """The jobs that it registered, and how long the slowest registration took."""
        said, errors = self._popen.communicate(timeout=30)
        assert self._popen.returncode == 0, errors
        answer: dict[str, Any] = json.loads(said)
        return [UUID(job) for job in answer["jobs"]], answer["slowest_s"]

    def close(self) -> None:
        """Ends it, where nobody has."""
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.communicate()


def place_of(settings: Settings) -> dict[str, str]:
    return {
        "HOROLOG_DATABASE_URL": settings.database_url(),
        "HOROLOG_NATS_URL": settings.nats_url(),
        "HOROLOG_NAMESPACE": settings.namespace,
    }


@contextmanager
def processes_of(tree: Path, settings: Settings, folder: Path) -> Generator[list[Process]]:
    """A scanner and a worker of that tree; gone in the end."""
    place = {**environment(tree, place_of(settings)), "WORKER_SETTINGS": json.dumps(WORKER)}
    options = [part for n, v in SCANNER.items() for part in ("--set", f"{n}={v}")]
    main = "horolog.interface.cli.main"
    arguments = {
        "scanner": ["scanner", *options, "--until-stdin-closes"],
        "worker": ["worker", "tests.faults.system.handlers:worker", "--until-stdin-closes"],
    }
    started = [
        Process.start(role, main, given, place, folder / f"{tree.name}-{role}.log", cwd=tree)
        for role, given in arguments.items()
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()


def upgrade(
    servers: EmbeddedServers,
    namespace: str,
    folder: Path,
    previous: Path,
    *,
    seconds: float,
    pause_s: float = 0.03,
) -> Upgrade:
    """The whole of it, ``seconds`` of load before and after the change of the schema.

    Where this release does not admit the one before, that has to be said, and nothing else happens.
    """
    endpoints = servers.ensure()
    settings = Settings.read(
        endpoints.database_url, nats_url=endpoints.nats_url, namespace=namespace
    )
    status, said = run(previous, place_of(settings), "migrate", "--partitions", "8")
    assert status == 0, said
    database = Database(endpoints.database_url, namespace)
    prepare(database)
    loads: list[Load] = []
    try:
        with processes_of(previous, settings, folder) as old:
            load = Load(previous, settings, pause_s)
            loads.append(load)
            _until(lambda: _succeeded(database, old[1]) >= 5, "the release before works", old)
            sleep(seconds / 2)
            if not _admitted(database):
                load.end()
                return _refused(database, settings, previous)
            begin = monotonic()
            known = _schema(database)
            with _one_release_further(known):
                migrating.migrate(database)
            migrated_s = monotonic() - begin
            with (
                System(servers, namespace, folder, prepared=True) as system,
                processes_of(ROOT, settings, folder) as new,
            ):
                later = Load(ROOT, settings, pause_s)
                loads.append(later)
                before = _succeeded(database, old[1])
                _until(
                    lambda: (
                        _succeeded(database, new[1]) >= 5
                        and _succeeded(database, old[1]) >= before + 5
                    ),
                    "both releases work side by side",
                    [*old, *new],
                )
                sleep(seconds / 2)
                (jobs, slowest_s), (more, slower_s) = load.end(), later.end()
                problems = _stop(old)
                system.expected.update(dict.fromkeys([*jobs, *more], 1))
                system.until_done()
                problems += _stop(new)
                found = account(system)
                problems += [*found.problems, *_words([*old, *new]), *_differences(settings, known)]
                return Upgrade(
                    True,
                    migrated_s,
                    max(slowest_s, slower_s),
                    _succeeded(database, old[1]),
                    _succeeded(database, new[1]),
                    found.occurrences,
                    problems,
                )
    finally:
        for one in loads:
            one.close()
        database.close()


def prepare(database: Database) -> None:
    """The table of effects, as :class:`System` makes it."""
    for statement in (EFFECTS, ONE_EFFECT):
        database.query(database.sql(statement))


def _schema(database: Database) -> int:
    """The last migration that was applied."""
    return database.query(database.sql("SELECT max(number) FROM :schema.migrations"))[0][0]


def _admitted(database: Database) -> bool:
    """Whether this release leaves the schema usable to the one before."""
    last = _schema(database)
    return all(m.admits <= last for m in migrations() if m.number > last)


def _refused(database: Database, settings: Settings, previous: Path) -> Upgrade:
    """Neither the schema nor the older processes may go on as if nothing were."""
    problems: list[str] = []
    status, said = run(ROOT, place_of(settings), "migrate")
    if status != 1 or "such processes live" not in said:
        problems.append(f"migrate did not refuse while older processes live: {status}, {said}")
    migrating.migrate(database, regardless=True)
    status, said = run(previous, place_of(settings), "job", "list")
    if status != 3 or "upgrade horolog" not in said:
        problems.append(f"the release before was not refused clearly: {status}, {said}")
    return Upgrade(False, problems=problems)


@contextmanager
def _one_release_further(admits: int) -> Generator[None]:
    """As code of the release after this one, whose schema still admits the one before."""
    here = migrations()
    last = here[-1].number
    further = [
        *here,
        *(
            Migration(last + n, f"next_{n}", text.format(admits=admits))
            for n, text in enumerate(NEXT, 1)
        ),
    ]
    modules: tuple[Any, ...] = (migrating, compatibility)
    for module in modules:
        module.migrations = lambda: further
    try:
        yield
    finally:
        for module in modules:
            module.migrations = migrations


def _succeeded(database: Database, worker: Process) -> int:
    """How many runs the worker has brought to their end."""
    return database.query(
        database.sql(
            "SELECT count(*) FROM :schema.log WHERE topic = 'occurrence.succeeded.1'"
            " AND actor LIKE %s"
        ),
        (f"%/{worker.pid}/%",),
    )[0][0]


def _stop(processes: Sequence[Process]) -> list[str]:
    for process in processes:
        process.tell_to_stop()
    return [
        f"{process.words.name}: exit status {status}"
        for process in processes
        if (status := process.wait()) != 0
    ]


def _words(processes: Sequence[Process]) -> list[str]:
    return [f"{p.words.name}: {line}" for p in processes for line in p.errors()]


def _differences(settings: Settings, admits: int) -> list[str]:
    with (
        _one_release_further(admits),
        Projections(settings.database_url(), namespace=settings.namespace) as projections,
    ):
        return [str(difference) for difference in projections.verify().differences]


def _until(true: Callable[[], bool], what: str, processes: Sequence[Process]) -> None:
    deadline = monotonic() + 60.0
    while not true():
        if monotonic() > deadline:
            words = [f"{p.words.name}: {p.last_words()}" for p in processes]
            raise AssertionError(f"not in time: {what}; {words}")
        sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(description="An upgrade under load.")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="horolog-upgrade-") as directory:
        folder = Path(directory)
        previous = previous_release(folder)
        if previous is None:
            print("there is no history here: the release before cannot be run")
            return 2
        servers = EmbeddedServers(folder / "home")
        servers.ensure()
        try:
            seen = upgrade(
                servers, f"t{secrets.token_hex(4)}", folder, previous, seconds=arguments.seconds
            )
        finally:
            servers.stop()
    print(json.dumps(vars(seen), indent=1))
    return 1 if seen.problems else 0


if __name__ == "__main__":
    sys.exit(main())
