"""Kill -9 at every named point of the path, in real processes, for every kind of handler.

    make kill-points                      all points, as a table
    python run.py --point "…" --json      some of them, for the suite

At each point a scanner and a worker process are killed once for each handler, and started again.
Then the log has to say that every run ended, and the table of effects that each took effect once;
a plain handler's as often as the log says at most: once, and once more for each attempt lost. What
only a scanner or a client says there (``ONCE``) is in the log once, whoever said it in the end.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from horolog import Every, Once, Retry, Scheduler
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
    # The next worker dies over what the first one's death left to find out.
    "in the handler, after its effect,before outcome is appended",
    "in the handler, after its effect,after outcome is appended",
    # The scanner dies over it.
    "in the handler, after its effect,before lost is appended",
    "in the handler, after its effect,after lost is appended",
    # The first attempt fails, snoozes, or dies and is replayed.
    "before failed is appended",
    "after failed is appended",
    "before snoozed is appended",
    "after snoozed is appended",
    "before dead_lettered is appended",
    "after dead_lettered is appended",
    # A person has it tried again.
    "in the client, before replayed is appended",
    "in the client, after replayed is appended",
    # A fire time overlaps the run before it and is dropped; it was the last.
    "before fires_skipped is appended",
    "after fires_skipped is appended",
    "before completed is appended",
    "after completed is appended",
    # The job changes while its claim waits for a worker.
    "in the client, before recalled is appended",
    "in the client, after recalled is appended",
    # The job is cancelled then; or its next fire time takes the place of the run.
    "in the client, before skipped is appended",
    "in the client, after skipped is appended",
    "before skipped is appended",
    "after skipped is appended",
    # The run is asked to stop while it runs.
    "in the client, before cancel_requested is appended",
    "in the client, after cancel_requested is appended",
    "before cancel_requested is appended",
    "after cancel_requested is appended",
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
    "before delivery_failed is appended",
    "after delivery_failed is appended",
    "before repeated is appended",
    "after repeated is appended",
    "before resolved is appended",
    "after resolved is appended",
)
"""In the order of the path; with a comma, two points of which each kills."""

ONCE = frozenset({
    "skipped", "replayed", "fires_skipped", "completed", "cancel_requested", "missed", "raised",
    "resolved",
})  # fmt: skip

DEADLINE_S = 30.0
LEASE_S = 1.6
"""A little longer than that of the victims."""

INTERVAL_S = 4
"""Between the fire times of a job that overlaps itself: the first run has begun by the second."""
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
    said: int
    state: str
    violations: int

    @property
    def right(self) -> bool:
        story = story_of(self.point)
        wanted = "skipped" if story.cancels else "succeeded"
        ended = self.state == wanted and self.violations == 0
        ended = ended and self.kills == len(parts(self.point))
        ended = ended and (kind_of(self.point) not in ONCE or self.said == 1)
        if story.cancels:
            return ended and self.effects == 0
        most = 1 + self.lost if self.handler == "plain" else 1
        return ended and 1 <= self.effects <= most


@dataclass(frozen=True)
class Story:
    """What happens to a run so that it comes to a point. ``first`` is what its first attempt does;
    ``command`` what a client does, while no worker lives, or (``while_running``) when one has
    begun; ``alerts`` that somebody is to be told of its death (and ``resolves`` that this
    is over before it ends); ``elects`` that its scanner has a successor, ``stops`` that it leaves;
    ``late`` that it begins only after its deadline; ``overlap`` what its job's next fire time does
    that comes before its end; ``told_by`` the program that is told of its death."""

    first: str = ""
    command: str = ""
    while_running: bool = False
    alerts: bool = False
    resolves: bool = False
    elects: bool = False
    stops: bool = False
    late: bool = False
    overlap: Literal["", "skip", "cancel_other"] = ""
    told_by: str = "true"

    @property
    def cancels(self) -> bool:
        return self.command.startswith("cancel") or self.overlap == "cancel_other"

    @property
    def holds(self) -> bool:
        """No worker lives until the point was reached."""
        return self.late or bool(self.overlap and not self.while_running)


ORDINARY = Story()
STORIES = {
    "failed": Story("fails"),
    "snoozed": Story("snoozes"),
    "dead_lettered": Story("dies"),
    "recalled": Story(command="change job"),
    "skipped": Story(command="cancel job"),
    "cancel_requested": Story("waits", "cancel run", while_running=True),
    "stopped": Story("waits", "cancel run", while_running=True),
    "replayed": Story("dies", "replay"),
    "fires_skipped": Story(overlap="skip"),
    "released": Story(stops=True),
    "missed": Story(late=True),
    "raised": Story("dies", alerts=True),
    "delivered": Story("dies", alerts=True),
    "repeated": Story("dies", alerts=True),
    "resolved": Story("dies", alerts=True, resolves=True),
    "elected": Story(elects=True),
    "delivery_failed": Story("dies", alerts=True, told_by="false"),
}
"""By what is appended at the point."""

OF_SCANNERS = {
    "skipped": Story(overlap="cancel_other"),
    "cancel_requested": Story("waits", overlap="cancel_other", while_running=True),
}
"""The same where it is not a client that appends it."""


def story_of(point: str) -> Story:
    kind = kind_of(point)
    if kind in OF_SCANNERS and not point.startswith("in the client"):
        return OF_SCANNERS[kind]
    return STORIES.get(kind, ORDINARY)


def kind_of(point: str) -> str:
    """What is appended at a point, or at the last of several; nothing, where nothing is."""
    return point.rpartition(" is appended")[0].rpartition(" ")[2]


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
                "KILL_POINTS": ",".join(parts(point)),
                "KILL_FLAGS": str(flags),
            }
            victims = Victims(environment, flags)
            occurrences: dict[str, str] = {}
            new: dict[str, int] = {}
            for handler in HANDLERS:
                story, before = story_of(point), said(database, point)
                if story.overlap:
                    until_ready(database, victims, story)  # each fire time is met in its turn
                job, key = begin(scheduler, handler, flags, story)
                occurrences[key] = handler

                def over(handler: str = handler, before: int = before) -> bool:
                    if not reached(point, handler, flags):
                        return False
                    return kind_of(point) not in ONCE or said(database, point) > before

                tell(scheduler, victims, job, key, story, owner=handler, over=over)
                wait_for_the_end(scheduler, victims, key, over)
                new[key] = said(database, point) - before
            return outcomes(scheduler, database, point, occurrences, new, flags)
    finally:
        if victims is not None:
            victims.end()
        database.query(database.sql("DROP SCHEMA :schema CASCADE"))
        database.close()


def parts(point: str) -> list[str]:
    """The points that it names, as the victims know them, which separate them by commas."""
    names = point.replace("in the handler, ", "in the handler; ")
    return names.replace("in the client, ", "in the client; ").split(",")


def until_ready(database: Database, victims: Victims, story: Story) -> None:
    """Until the scanner leads everything, and the worker lives where it has to."""
    led = "SELECT bool_and(lease_until > now()) FROM :schema.partitions"
    lives = "SELECT count(*) > 0 FROM :schema.instances WHERE role = 'worker'"
    roles = {"scanner": led} | ({"worker": lives} if story.while_running else {})
    deadline = time.monotonic() + DEADLINE_S
    victims.keep_alive(*roles)
    time.sleep(LEASE_S)  # what a dead one led is led no more
    for ready in roles.values():
        while database.query(database.sql(ready)) != [(True,)] and time.monotonic() < deadline:
            victims.keep_alive(*roles)
            time.sleep(0.05)


def said(database: Database, point: str) -> int:
    """How often the log has what is appended at the point."""
    count = database.sql("SELECT count(*) FROM :schema.log WHERE split_part(topic, '.', 2) = %s")
    return database.query(count, (kind_of(point),))[0][0]


def begin(scheduler: Scheduler, handler: str, flags: Path, story: Story) -> tuple[str, str]:
    """Orders one run of the handler, soon; its job and its key. One after the other: a kill is for
    one run."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    job = scheduler.register(
        handler,
        schedule=Every(INTERVAL_S, at, limit=2) if story.overlap else Once(at),
        overlap=story.overlap or "skip",
        retry=Retry(base=0.0, jitter=0.0, max_attempts=10),
        payload={"first": story.first} if story.first else {},
        start_within=0.01,
        owner=handler,
    )
    if story.alerts:
        scheduler.set_alert(handler, dead_letters=1, repeat=1.0, command=[story.told_by])
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
    owner: str,
    over: Callable[[], bool],
) -> None:
    """Has the story happen, up to where the run only has to end."""
    if story.elects:
        return victims.hold("scanner")
    if story == Story(story.first):
        return None
    dies = story.first == "dies"
    worked = dies or story.while_running
    if not worked:
        victims.hold("worker")
    begun = "occurrence.claimed.1"
    if worked:
        begun = "occurrence.dead_lettered.1" if dies else "occurrence.attempted.1"
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        victims.keep_alive("scanner", *(["worker"] if worked else []))
        if (story.alerts or story.holds or story.overlap) and over():
            return None
        if story.resolves and is_told(scheduler, owner):
            scheduler.replay(key, reason="so that it is over")
            return None
        last = [event.topic for event in scheduler.history(key)][-1:]
        if story.stops and last == ["occurrence.claimed.1"]:
            return victims.stop("scanner")
        if story.command and last == [begun]:
            return victims.ask(story.command, job if "job" in story.command else key)
        time.sleep(0.05)
    return None


def is_told(scheduler: Scheduler, owner: str) -> bool:
    """Whether the owner's alert is open, and somebody was told."""
    topics = [event.topic for event in scheduler.alert_history(owner=owner)]
    return "alert.delivered.1" in topics


def reached(point: str, handler: str, flags: Path) -> bool:
    """Whether every process has died that this point kills for the handler."""
    return kills(flags, handler) == len(parts(point))


def wait_for_the_end(
    scheduler: Scheduler, victims: Victims, key: str, over: Callable[[], bool]
) -> None:
    """Until the run has ended and its point is ``over``, or the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        victims.keep_alive("scanner", "worker")
        last = [event.topic for event in scheduler.history(key)][-1:]
        if last == ["occurrence.dead_lettered.1"] and over():
            scheduler.replay(key, reason="it was to die")
        if last in ENDED and over():
            return
        time.sleep(0.05)


def kills(flags: Path, handler: str) -> int:
    """How often a process was killed for this handler."""
    return sum(1 for flag in flags.iterdir() if flag.name.endswith(f" {handler}"))


def outcomes(
    scheduler: Scheduler,
    database: Database,
    point: str,
    occurrences: Mapping[str, str],
    new: Mapping[str, int],
    flags: Path,
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
                new[key],
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
            f"{outcome.kills:>5} {outcome.attempts:>8} {outcome.lost:>5} {outcome.said:>5}"
            f" {outcome.effects:>7}"
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
        print(f"{'killed':<70} {'handler':<14}kills attempts  lost  said effects  ended")
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
