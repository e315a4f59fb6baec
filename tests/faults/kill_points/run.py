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
    # The first attempt fails, snoozes, or dies and is replayed.
    "before failed is appended",
    "after failed is appended",
    "before snoozed is appended",
    "after snoozed is appended",
    "before dead_lettered is appended",
    "after dead_lettered is appended",
    # The job changes while its claim waits for a worker.
    "in the client, before recalled is appended",
    "in the client, after recalled is appended",
    # The job is cancelled then: the client dies over what is to be skipped; the scanner, too.
    "in the client, before skipped is appended",
    "in the client, after skipped is appended",
    "in the client, before skipped is appended,before skipped is appended",
    "in the client, before skipped is appended,after skipped is appended",
    # The run is asked to stop while it runs.
    "in the client, before cancel_requested is appended",
    "in the client, after cancel_requested is appended",
    "before stopped is appended",
    "after stopped is appended",
    # Beside the runs: leadership, deadlines, alerts.
    "before elected is appended",
    "after elected is appended",
    "before released is appended",
    "after released is appended",
    "before missed is appended",
    "after missed is appended",
    "before raised is appended",
    "after raised is appended",
    "before delivered is appended",
    "after delivered is appended",
)
"""In the order of the path; with a comma, two points of which each kills."""

DEADLINE_S = 30.0
ENDED = (["occurrence.succeeded.1"], ["occurrence.skipped.1"], ["occurrence.stopped.1"])


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
        story = story_of(self.point)
        wanted = "skipped" if story.cancels else "succeeded"
        ended = self.state == wanted and self.violations == 0 and self.kills > 0
        if story.cancels:
            return ended and self.effects == 0
        most = 1 + self.lost if self.handler == "plain" else 1
        return ended and 1 <= self.effects <= most


@dataclass(frozen=True)
class Story:
    """What happens to a run so that it comes to a point. ``first`` is what its first attempt does;
    ``command`` what a client does, while no worker lives, or (``while_running``) when one has
    begun; ``alerts`` that somebody is to be told of its death, ``stops`` that its scanner is;
    ``late`` that it begins only after its deadline."""

    first: str = ""
    command: str = ""
    while_running: bool = False
    alerts: bool = False
    stops: bool = False
    late: bool = False

    @property
    def cancels(self) -> bool:
        return self.command.startswith("cancel")


def story_of(point: str) -> Story:
    kind = point.rpartition(" is appended")[0].rpartition(" ")[2]
    match kind:
        case "failed":
            return Story("fails")
        case "snoozed":
            return Story("snoozes")
        case "dead_lettered":
            return Story("dies")
        case "recalled":
            return Story(command="change")
        case "skipped":
            return Story(command="cancel job")
        case "cancel_requested" | "stopped":
            return Story("waits", "cancel run", while_running=True)
        case "released":
            return Story(stops=True)
        case "missed":
            return Story(late=True)
        case "raised" | "delivered":
            return Story("dies", alerts=True)
        case _:
            return Story()


class Victims:
    """A scanner and a worker process, started again whenever they have died."""

    def __init__(self, environment: dict[str, str], words: Path) -> None:
        self._environment = os.environ | environment
        self._words = words
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def keep_alive(self, *roles: str) -> None:
        for role in roles:
            process = self._processes.get(role)
            if process is None or process.poll() is not None:
                self._processes[role] = self._start(role)

    def ask(self, command: str, identity: str) -> None:
        """Has clients die over a command until one has done it."""
        while self._start("client", command, identity).wait() < 0:
            continue

    def stop(self, role: str) -> None:
        """Tells it to stop, which it may die over."""
        process = self._processes.pop(role)
        process.terminate()
        process.wait()

    def hold(self, role: str) -> None:
        """None lives until it is kept alive again."""
        if (process := self._processes.pop(role, None)) is not None:
            process.kill()
            process.wait()

    def _start(self, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        program = str(Path(__file__).with_name("victim.py"))
        with (self._words / f"{role}.log").open("ab") as sink:
            return subprocess.Popen(
                [sys.executable, program, role, *arguments],
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
                story = story_of(point)
                job, key = begin(scheduler, handler, flags, story)
                occurrences[key] = handler
                tell(scheduler, victims, job, key, story, wanted=(point, handler), flags=flags)
                wait_for_the_end(scheduler, victims, key, wanted=(point, handler), flags=flags)
            return outcomes(scheduler, database, point, occurrences, flags)
    finally:
        if victims is not None:
            victims.end()
        database.query(database.sql("DROP SCHEMA :schema CASCADE"))
        database.close()


def point_names(point: str) -> str:
    """The points as the victims know them, which separate them by commas."""
    return point.replace("in the handler, ", "in the handler; ").replace(
        "in the client, ", "in the client; "
    )


def begin(scheduler: Scheduler, handler: str, flags: Path, story: Story) -> tuple[str, str]:
    """Orders one run of the handler, soon; its job and its key. One after the other: a kill is for
    one run."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    job = scheduler.register(
        handler,
        schedule=Once(at),
        retry=Retry(base=0.0, jitter=0.0, max_attempts=10),
        payload={"first": story.first} if story.first else {},
        start_within=0.01,
        owner=handler,
    )
    if story.alerts:
        scheduler.set_alert(handler, dead_letters=1, command=["true"])
    key = str(occurrence_id(job.id, at))
    (flags / "runs").mkdir(exist_ok=True)
    for name in (key, "current"):
        (flags / "runs" / name).write_text(handler)
    return str(job.id), key


def tell(
    scheduler: Scheduler,
    victims: Victims,
    job: str,
    key: str,
    story: Story,
    *,
    wanted: tuple[str, str],
    flags: Path,
) -> None:
    """Has the story happen, up to where the run only has to end."""
    if not (story.command or story.alerts or story.stops or story.late):
        if "elected" in wanted[0]:
            victims.hold("scanner")  # its successor is elected, for this run too
        return None
    if story.stops or story.late or (story.command and not story.while_running):
        victims.hold("worker")
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        victims.keep_alive("scanner", *(["worker"] if story.while_running or story.alerts else []))
        last = [event.topic for event in scheduler.history(key)][-1:]
        if (story.alerts or story.late) and reached(*wanted, flags):
            return None
        if story.stops and last == ["occurrence.claimed.1"]:
            return victims.stop("scanner")
        begun = "occurrence.attempted.1" if story.while_running else "occurrence.claimed.1"
        if story.command and last == [begun]:
            return victims.ask(story.command, key if story.command == "cancel run" else job)
        time.sleep(0.05)
    return None


def reached(point: str, handler: str, flags: Path) -> bool:
    """Whether every process has died that this point kills for the handler."""
    return kills(flags, handler) == len(point_names(point).split(","))


def wait_for_the_end(
    scheduler: Scheduler, victims: Victims, key: str, *, wanted: tuple[str, str], flags: Path
) -> None:
    """Until the run has ended and its point has killed, or the deadline."""
    point, handler = wanted
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        victims.keep_alive("scanner", "worker")
        last = [event.topic for event in scheduler.history(key)][-1:]
        if last == ["occurrence.dead_lettered.1"] and reached(point, handler, flags):
            scheduler.replay(key, reason="it was to die")
        if last in ENDED and reached(point, handler, flags):
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
            f"{outcome.point:<70} {outcome.handler:<14}"
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
        print(f"{'killed':<70} {'handler':<14}kills attempts  lost effects  ended")
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
