"""Kill -9 at every named point of the path, in real processes, for every kind of handler.

    make kill-points                      all points, as a table
    python run.py --point "…" --json      some of them, for the suite

At each point a scanner and a worker process are killed once for each handler, and started again.
Then the log has to say that every run ended, and the table of effects that each took effect once;
a plain handler's as often as the log says at most: once, and once more for each attempt lost.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from horolog import Once, Retry, Scheduler
from horolog.application.verify import verify
from horolog.domain.ids import occurrence_id
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.postgres.migrate import migrate

HANDLERS = ("idempotent", "reconciled", "transactional", "plain")

POINTS = (
    "before claimed is appended",
    "after claimed is appended",
    "before it is published",
    "after it is published",
    "before attempted is appended",
    "after attempted is appended",
    "in the handler, before its effect",
    "in the handler, after its effect",
    "before outcome is appended",
    "after outcome is appended",
    "before it is acknowledged",
    "after it is acknowledged",
    # The scanner dies over what the worker's death left behind.
    "in the handler, after its effect,before lost is appended",
    "in the handler, after its effect,after lost is appended",
)
"""In the order of the path; with a comma, two points of which each kills."""

DEADLINE_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """What became of one run."""

    point: str
    handler: str
    kills: int
    effects: int
    attempts: int
    lost: int
    state: str
    violations: int

    @property
    def right(self) -> bool:
        most = 1 + self.lost if self.handler == "plain" else 1
        ended = self.state == "succeeded" and self.violations == 0
        return ended and self.kills > 0 and 1 <= self.effects <= most


class Victims:
    """A scanner and a worker process, started again whenever they have died."""

    def __init__(self, environment: dict[str, str], words: Path) -> None:
        self._environment = os.environ | environment
        self._words = words
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def keep_alive(self) -> None:
        for role in ("scanner", "worker"):
            process = self._processes.get(role)
            if process is None or process.poll() is not None:
                with (self._words / f"{role}.log").open("ab") as sink:
                    self._processes[role] = subprocess.Popen(
                        [sys.executable, str(Path(__file__).with_name("victim.py")), role],
                        env=self._environment, stdout=sink, stderr=sink,
                    )  # fmt: skip

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


def run_point(point: str, database_url: str, nats_url: str, directory: Path) -> list[Outcome]:
    """Runs every handler once, killing at the point."""
    namespace = f"kill_{secrets.token_hex(4)}"
    flags = directory / namespace
    flags.mkdir()
    database = Database(database_url, namespace)
    victims = None
    try:
        migrate(database)
        database.query(database.sql("CREATE TABLE :schema.effects (key text)"))
        with Scheduler(database_url, namespace=namespace) as scheduler:
            environment = {
                "HOROLOG_DATABASE_URL": database_url,
                "HOROLOG_NATS_URL": nats_url,
                "HOROLOG_NAMESPACE": namespace,
                "KILL_POINTS": point_names(point),
                "KILL_FLAGS": str(flags),
            }
            victims = Victims(environment, flags)
            occurrences: dict[str, str] = {}
            for handler in HANDLERS:
                key = begin(scheduler, handler, flags)
                occurrences[key] = handler
                wait_for_the_end(scheduler, victims, key, wanted=(point, handler), flags=flags)
            return outcomes(scheduler, database, point, occurrences, flags)
    finally:
        if victims is not None:
            victims.end()
        database.query(database.sql("DROP SCHEMA :schema CASCADE"))
        database.close()


def point_names(point: str) -> str:
    """The points as the victims know them, which separate them by commas."""
    return point.replace("in the handler, ", "in the handler; ")


def begin(scheduler: Scheduler, handler: str, flags: Path) -> str:
    """Orders one run of the handler, soon; its key. One after the other: a kill is for one run."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    retry = Retry(base=0.0, jitter=0.0, max_attempts=10)
    key = str(occurrence_id(scheduler.register(handler, schedule=Once(at), retry=retry).id, at))
    (flags / "runs").mkdir(exist_ok=True)
    (flags / "runs" / key).write_text(handler)
    return key


def wait_for_the_end(
    scheduler: Scheduler, victims: Victims, key: str, *, wanted: tuple[str, str], flags: Path
) -> None:
    """Until the run has ended and its point has killed, or the deadline."""
    point, handler = wanted
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        victims.keep_alive()
        ended = [event.topic for event in scheduler.history(key)][-1:] == ["occurrence.succeeded.1"]
        if ended and kills(flags, handler) == len(point_names(point).split(",")):
            return
        time.sleep(0.05)


def kills(flags: Path, handler: str) -> int:
    """How often a process was killed for this handler."""
    return sum(1 for flag in flags.iterdir() if flag.name.endswith(f" {handler}"))


def outcomes(
    scheduler: Scheduler, database: Database, point: str, occurrences: dict[str, str], flags: Path
) -> list[Outcome]:
    effects = dict(
        database.query(database.sql("SELECT key, count(*) FROM :schema.effects GROUP BY key"))
    )
    violations = len(verify(PostgresLogScan(database)).violations)
    found: list[Outcome] = []
    for key, handler in occurrences.items():
        topics = [event.topic for event in scheduler.history(key)]
        known = scheduler.occurrences(limit=100)
        state = next((o.state for o in known if str(o.id) == key), "unclaimed")
        found.append(
            Outcome(
                point,
                handler,
                kills(flags, handler),
                effects.get(key, 0),
                topics.count("occurrence.attempted.1"),
                topics.count("occurrence.lost.1"),
                state,
                violations,
            )
        )
    return found


@contextmanager
def servers() -> Generator[tuple[str, str]]:
    """The servers of the environment, or embedded ones for this run alone."""
    database_url, nats_url = (
        os.environ.get("HOROLOG_DATABASE_URL"),
        os.environ.get("HOROLOG_NATS_URL"),
    )
    if database_url and nats_url:
        yield database_url, nats_url
        return
    with tempfile.TemporaryDirectory(prefix="horolog-kill-") as home:
        embedded = EmbeddedServers(Path(home) / "home")
        try:
            endpoints = embedded.ensure()
            yield endpoints.database_url, endpoints.nats_url
        finally:
            embedded.stop()


def show(found: Sequence[Outcome]) -> None:
    for outcome in found:
        right = "right" if outcome.right else "WRONG"
        print(
            f"{outcome.point:<58} {outcome.handler:<14}"
            f"{outcome.kills:>5} {outcome.attempts:>8} {outcome.lost:>5} {outcome.effects:>7}"
            f"  {outcome.state:<10} {right}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--point", action="append", choices=POINTS, help="only this; repeatable")
    parser.add_argument("--times", type=int, default=1, help="how often to go through them")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if not options.json:
        print(f"{'killed':<58} {'handler':<14}kills attempts  lost effects  ended")
    wrong = 0
    with servers() as (database_url, nats_url), tempfile.TemporaryDirectory() as directory:
        for _ in range(options.times):
            for point in options.point or POINTS:
                found = run_point(point, database_url, nats_url, Path(directory))
                wrong += sum(not outcome.right for outcome in found)
                if options.json:
                    for outcome in found:
                        print(json.dumps(asdict(outcome) | {"right": outcome.right}), flush=True)
                else:
                    show(found)
    if not options.json:
        print(f"{wrong} wrong" if wrong else "every run took effect as it must")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
