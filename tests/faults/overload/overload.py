"""Overload: ten times what the workers can take, for five minutes, and the way back from it.

    make overload SECONDS=300            or: python -m tests.faults.overload.overload --seconds 300

One scanner and two workers with the settings that they have by themselves. The slow queue's runs
take a tenth of a second and each worker has two hands for them: that is the sustainable rate.
Beside it a quick queue gets a few runs a second, in the same workers.

    calm        what the workers sustain, and what the processes take meanwhile
    flood       ten times that for so many seconds
    recovery    nobody registers; a fifth of what is left of the time shows at which rate it shrinks
    more hands  workers with a hundred hands take the rest

Too late is what everything in it may be. The exit status is 1 where anything else is wrong: a run
that is lost, doubled, failed or given up, a word of an error, memory that grows with the backlog,
more connections than when all is calm, more claims than the bound says, or quick runs that waited
for slow ones: more of those were begun in the meantime than when all was calm.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from threading import Thread
from uuid import UUID

from tests.faults.overload.handlers import SECONDS
from tests.faults.overload.overtaking import Waits, of, waits
from tests.faults.overload.watching import Watched, children
from tests.faults.system.processes import Process

from horolog import JobSpec, Once, Scheduler
from horolog.application.scanner.settings import ScannerSettings
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.keeper import temporary_folder
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

WORKERS, HANDS, MORE_HANDS = 2, 2, 100
SUSTAINABLE = WORKERS * HANDS / SECONDS
QUICK_A_SECOND = 5
CALM_S = 20.0
BATCH_S = 0.25

GROWTH = 1.5
SLACK_MB = 60.0
"""How much more memory a process may take in the end than in the first third of the flood."""

MORE_OFTEN_HALF = 2 * WORKERS * HANDS
MORE_OFTEN_ALL = 10 * WORKERS * HANDS
"""By how many more slow runs than when all is calm half of the quick ones may be overtaken in the
flood, and 99 of 100: two, and ten, for each of the hands that do nothing but slow runs."""

Say = Callable[[str], None]


@dataclass
class Stage:
    """A namespace, its processes, and what was registered in it."""

    settings: Settings
    database: Database
    scheduler: Scheduler
    folder: Path
    processes: dict[str, Process] = field(default_factory=dict[str, Process])
    registered: int = 0
    quick: list[UUID] = field(default_factory=list[UUID])

    def start(self, name: str, hands: int = HANDS) -> None:
        role = name.partition("-")[0]
        arguments = [role, *(["tests.faults.overload.handlers:worker"] * (role == "worker"))]
        place = {
            "HOROLOG_DATABASE_URL": self.settings.database_url(),
            "HOROLOG_NATS_URL": self.settings.nats_url(),
            "HOROLOG_NAMESPACE": self.settings.namespace,
            "HANDS": str(hands),
        }
        self.processes[name] = Process.start(
            role, "horolog.interface.cli.main", [*arguments, "--until-stdin-closes"], place,
            self.folder / f"{name}.log",
        )  # fmt: skip

    def ask(self, statement: str) -> list[Row]:
        return self.database.query(self.database.sql(statement))

    def succeeded(self) -> int:
        return self.ask("SELECT count(*)::int FROM :schema.executions WHERE state = 'succeeded'")[
            0
        ][0]

    def position(self) -> int:
        """Up to where jobs are registered in the log."""
        return self.ask("SELECT coalesce(max(position), 0) FROM :schema.job_events")[0][0]

    def left(self) -> int:
        return self.ask("SELECT count(*)::int FROM :schema.next_runs")[0][0]

    def register(self, rate: float, seconds: float) -> None:
        """So many slow runs a second, all due at once, and the quick ones beside them."""
        began, slow, quick = time.monotonic(), 0, 0
        while (passed := time.monotonic() - began) < seconds:
            now = Once(datetime.now(UTC))
            more, singles = int(passed * rate) - slow, int(passed * QUICK_A_SECOND) - quick
            specs = [JobSpec("quick", schedule=now, queue="quick")] * singles
            specs += [JobSpec("slow", schedule=now, queue="slow")] * more
            jobs = list(self.scheduler.register_many(specs))
            self.quick += [job.id for job in jobs[:singles]]
            slow, quick = slow + more, quick + singles
            time.sleep(max(0.0, BATCH_S - (time.monotonic() - began - passed)))
        self.registered += slow + quick

    def pids(self, servers: Mapping[str, int]) -> dict[str, list[int]]:
        found = {name: [p.pid] for name, p in self.processes.items() if p.status is None}
        found["client"] = [os.getpid()]
        return found | {name: children(pid) for name, pid in servers.items()}

    def counts(self) -> dict[str, int]:
        """Of the database, as somebody beside it sees it."""
        with suppress(StoreUnavailable):
            rows = self.ask(
                "SELECT (SELECT count(*)::int FROM pg_stat_activity"
                " WHERE backend_type = 'client backend'),"
                " (SELECT count(*)::int FROM :schema.next_runs WHERE state = 'claimed')"
            )
            return {"connections": rows[0][0], "claimed": rows[0][1]}
        return {}


@dataclass
class Result:
    """``rates`` are successes a second of each part; ``breaches`` what must not be."""

    rates: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    late: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    flooded: tuple[float, float] = (0.0, 0.0)
    flood: int = 0
    left: int = 0
    marks: list[int] = field(default_factory=list[int])
    waits: dict[str, Waits] = field(default_factory=dict[str, Waits])
    more_hands_at: float = 0.0
    breaches: list[str] = field(default_factory=list[str])


def overload(stage: Stage, watched: Watched, seconds: float, say: Say) -> Result:
    """All parts of it."""
    result = Result()
    while stage.ask("SELECT count(*)::int FROM :schema.instances")[0][0] < 1 + WORKERS:
        time.sleep(0.1)
    _rates(stage, result, "calm", CALM_S / 2, lambda: stage.register(SUSTAINABLE * 0.8, CALM_S))
    since, before = watched.now, stage.registered
    result.marks.append(stage.position())
    rate = SUSTAINABLE * 10
    say(f"calm is over; {rate:.0f} a second for {seconds:.0f} s")
    _rates(stage, result, "flood", seconds / 5, lambda: stage.register(rate, seconds))
    result.flooded, result.flood = (since, watched.now), stage.registered - before
    result.left = stage.left()
    result.marks.append(stage.position())
    say(f"the flood is over; {result.left:,} are left")
    _rates(stage, result, "recovery", seconds / 20, lambda: time.sleep(seconds / 5))
    result.more_hands_at = watched.now
    for number in range(WORKERS):
        stage.start(f"worker-with-more-hands-{number}", MORE_HANDS)
    deadline = time.monotonic() + 60 + result.left / 50
    while (left := stage.left()) and time.monotonic() < deadline:
        time.sleep(1.0)
    say(f"{left} are left")
    return result


def _rates(
    stage: Stage, result: Result, name: str, window_s: float, act: Callable[[], None]
) -> None:
    """Successes a second in windows of the time that ``act`` takes, asked by the watcher's side."""
    thread = Thread(target=act)
    thread.start()
    at, before = time.monotonic(), stage.succeeded()
    rates = result.rates[name] = []
    while thread.is_alive():
        thread.join(window_s)
        now, done = time.monotonic(), stage.succeeded()
        if now - at >= window_s * 0.9:
            rates.append((done - before) / (now - at))
            at, before = now, done


def _quick_ones(stage: Stage, result: Result) -> None:
    """The quick runs went on beside the flood as before it."""
    calm_ended, flood_ended = result.marks
    calm = result.waits["calm"] = waits(stage.database, 0, calm_ended)
    flood = result.waits["flood"] = waits(stage.database, calm_ended, flood_ended)
    for words, part, more in (("half", 0.5, MORE_OFTEN_HALF), ("99 of 100", 0.99, MORE_OFTEN_ALL)):
        before, then = of(calm.overtaken, part), of(flood.overtaken, part)
        if then > before + more:
            result.breaches.append(
                f"{words} of the quick runs were overtaken by {then:.0f} slow ones in the flood,"
                f" and by {before:.0f} before"
            )


def judge(stage: Stage, watched: Watched, result: Result) -> None:
    """What must not be, added to the breaches."""
    say, report = result.breaches.append, verify_log(stage.settings)
    for violation in report.violations[:20]:
        say(str(violation))
    for what, number, wanted in (
        ("occurrences", report.occurrences, stage.registered),
        ("succeeded", report.succeeded, stage.registered),
        ("attempts", report.attempts, stage.registered),
        ("failed", report.failed, 0),
        ("lost", report.lost, 0),
        ("left in the index", stage.left(), 0),
    ):
        if number != wanted:
            say(f"{what}: {number:,}, not {wanted:,}")
    for name, process in stage.processes.items():
        if process.status is not None:
            say(f"{name} ended with {process.status}: {process.last_words()}")
        for line in process.errors():
            say(f"{name} said: {line}")
    began, ended = result.flooded
    third = began + (ended - began) / 3
    for name in list(watched.memory):
        early, late = watched.most(name, began, third), watched.most(name, third, watched.now)
        if early and late > early * GROWTH + SLACK_MB and name != "postgres":
            say(f"{name} took {early:.0f} MB in the first third of the flood, and {late:.0f} later")
    calm = max((n for at, n in watched.counts["connections"] if at < began), default=0)
    flooded = max((n for at, n in watched.counts["connections"] if began <= at < ended), default=0)
    if flooded > calm * 1.5 + 5:
        say(f"{flooded} connections in the flood, and {calm} before")
    bound = ScannerSettings().max_unpublished
    if (claimed := watched.highest("claimed")) > bound:
        say(f"{claimed:,} claims waited for workers, where the bound is {bound:,}")


def _lateness(stage: Stage, result: Result) -> None:
    rows = stage.ask(
        "SELECT j.name, percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP"
        " (ORDER BY extract(epoch FROM e.recorded_at - x.fire_time)::float8)"
        " FROM :schema.executions x JOIN :schema.jobs j ON j.id = x.job_id"
        " JOIN :schema.occurrence_events e ON e.stream = x.id"
        " AND e.topic = 'occurrence.attempted.1' GROUP BY j.name"
    )
    result.late = {name: (late[0], late[1]) for name, late in rows}


def table(watched: Watched, result: Result) -> str:
    """All that was seen."""
    began, ended = result.flooded
    lines = ["", f"{'runs a second':24} {'in windows of the part':>40}"]
    lines += [
        f"  {name:22} " + " ".join(f"{rate:7.1f}" for rate in rates)
        for name, rates in result.rates.items()
    ]
    lines += [f"  sustainable {SUSTAINABLE:.0f}; registered {result.flood:,} in the flood"]
    lines[-1] += f" ({result.flood / max(1.0, ended - began):,.0f} a second), {result.left:,} left"
    lines += ["", f"{'late, in seconds':24} {'p50':>8} {'p99':>8}"]
    lines += [f"  {name:22} {p50:8.2f} {p99:8.2f}" for name, (p50, p99) in result.late.items()]
    lines += ["", f"{'quick runs':24} overtaken p50 p99   claimed after s   and begun after s"]
    lines += [f"  {part:22} {seen}" for part, seen in result.waits.items()]
    steps = [began + (ended - began) * part / 4 for part in range(5)]
    spans = [(0.0, began), *pairwise(steps), (ended, result.more_hands_at)]
    spans.append((result.more_hands_at, watched.now))
    head = ["calm", "flood 1/4", "2/4", "3/4", "4/4", "recovery", "more"]
    lines += ["", f"{'memory, most MB':24} " + " ".join(f"{word:>9}" for word in head)]
    for name in sorted(watched.memory):
        most = (watched.most(name, *span) for span in spans)
        lines.append(f"  {name:22} " + " ".join(f"{mb:9.0f}" if mb else " " * 9 for mb in most))
    lines += ["", f"most connections {watched.highest('connections')}"]
    lines += [f"most claims that waited for workers {watched.highest('claimed'):,}"]
    lines += ["", f"breaches: {len(result.breaches)}", *(f"  {what}" for what in result.breaches)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    seconds: float = parser.parse_args().seconds
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"[{time.monotonic() - began:6.1f}] {words}", flush=True)

    with temporary_folder() as folder, ExitStack() as stack:
        servers = EmbeddedServers(folder / "home")
        endpoints = servers.ensure()
        settings = Settings.read(
            endpoints.database_url, nats_url=endpoints.nats_url, namespace="overload"
        )
        database = Database(endpoints.database_url, "overload", size=3)
        stack.callback(database.close)
        migrate(database)
        scheduler = stack.enter_context(Scheduler(settings=settings))
        stage = Stage(settings, database, scheduler, folder)
        stack.callback(lambda: [process.kill() for process in stage.processes.values()])
        for name in ("scanner", *(f"worker-{number}" for number in range(WORKERS))):
            stage.start(name)
        found = _servers(database, folder / "home")
        watched = Watched(lambda: stage.pids(found), stage.counts)
        with watched.watching():
            result = overload(stage, watched, seconds, say)
        _lateness(stage, result)
        _quick_ones(stage, result)
        judge(stage, watched, result)
        print(table(watched, result))
    return 1 if result.breaches else 0


def _servers(database: Database, home: Path) -> dict[str, int]:
    """The process ids of the two servers."""
    backend = database.query(database.sql("SELECT pg_backend_pid()"))[0][0]
    stat = Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()
    found = {"postgres": int(stat[1])}
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if (directory / "comm").read_text().startswith("nats-server") and (
                directory / "cwd"
            ).resolve() == (home / "nats").resolve():
                found["nats"] = int(directory.name)
    return found


if __name__ == "__main__":
    sys.exit(main())
