"""What a rebuild costs while jobs fire: events a second, memory, locks, how late the fires are.

    python bench/rebuild.py [--events N] [--jobs N] [--projections NAMES] [--fires N]
                            [--home DIR [--fill-only]] [--json FILE]

A filled log (bench/filled_log.py) whose read models are what it says, a scanner and a worker beside
it with ``--fires`` jobs that fire each second, and a rebuild that finds no difference. Lateness is
from the fire time to the start of the handler, of the runs that were due during the rebuild, beside
that of the seconds before it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kept import Kept, add_options, kept_log

from horolog import Every, JobSpec, Scheduler
from horolog.interface.projections import Projections

TARGET_EVENTS_PER_S = 100_000
TARGET_LATE_MS = 250
BEFORE_S = 10.0


@contextmanager
def firing(kept: Kept, scheduler: Scheduler, count: int) -> Generator[list[UUID]]:
    """A scanner, a worker and ``count`` jobs that fire each second, running well."""
    if not count:
        yield []
        return
    specs = [JobSpec("ping", schedule=Every(1), key=f"bench-{n}") for n in range(count)]
    jobs = [job.id for job in scheduler.register_many(specs)]
    place = {
        "HOROLOG_DATABASE_URL": kept.settings.database_url(),
        "HOROLOG_NATS_URL": kept.settings.nats_url(),
        "HOROLOG_NAMESPACE": kept.settings.namespace,
    }
    command = [sys.executable, "-m", "horolog.interface.cli.main"]
    processes = [
        subprocess.Popen(
            [*command, *arguments, "--log-level", "ERROR"], env=os.environ | place, cwd="/"
        )
        for arguments in (["scanner"], ["worker", "horolog.interface.samples:worker"])
    ]
    try:
        while len(scheduler.occurrences(job_id=jobs[-1], state="succeeded", limit=10)) < 5:
            time.sleep(0.2)
        yield jobs
    finally:
        for job in jobs:
            scheduler.cancel(job)
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def late_ms(scheduler: Scheduler, since: datetime, until: datetime) -> dict[str, float]:
    """The lateness of the jobs' runs with fire times in between."""
    late: list[float] = []
    after: UUID | None = None
    while page := scheduler.executions(
        name="ping", since=since, until=until, after=after, limit=1_000
    ):
        late += [run.late_s for run in page if run.late_s is not None]
        after = page[-1].id
    late.sort()
    if not late:
        return {"runs": 0}
    named = {"p50": late[len(late) // 2], "p99": late[int(len(late) * 0.99)], "worst": late[-1]}
    return {"runs": len(late)} | {name: round(value * 1e3, 1) for name, value in named.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=20, help="runs in an append")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--fires", type=int, default=20, help="a second, beside the rebuild")
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--projections", default="next_runs", help="comma-separated; 'all' for all")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    given = parser.parse_args()
    names = () if given.projections == "all" else tuple(given.projections.split(","))
    rounds = max(1, given.events // (3 * given.jobs))
    with (
        kept_log(
            given.home, jobs=given.jobs, rounds=rounds, days=given.days, batch=given.batch
        ) as kept,
        Scheduler(settings=kept.settings) as scheduler,
    ):
        if given.fill_only:
            return 0
        with firing(kept, scheduler, given.fires):
            quiet_since = datetime.now(UTC)
            time.sleep(BEFORE_S if given.fires else 0)
            begun = datetime.now(UTC)
            cpu = time.process_time()
            with Projections(settings=kept.settings, window=given.window) as projections:
                outcome = _rebuilt(projections, names, profile=given.profile)
            cpu = time.process_time() - cpu
            ended = datetime.now(UTC)
            time.sleep(1.0 if given.fires else 0)
            before, during = (
                late_ms(scheduler, *span) for span in ((quiet_since, begun), (begun, ended))
            )
    row = {
        "projections": outcome.projections,
        "events": outcome.events,
        "seconds": outcome.seconds,
        "events_per_s": round(outcome.events / outcome.seconds),
        "python_cpu_us_per_event": round(cpu / outcome.events * 1e6, 2),
        "differences": outcome.difference_count,
        "lock_held_ms": round(outcome.longest_hold_s * 1e3, 1),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "late_ms_before": before,
        "late_ms_during": during,
        "targets": {"events_per_s": TARGET_EVENTS_PER_S, "late_ms p99": TARGET_LATE_MS},
    }
    print(json.dumps(row, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(row, indent=1))
    return 1 if outcome.difference_count else 0


def _rebuilt(projections: Projections, names: tuple[str, ...], *, profile: bool) -> Any:
    if not profile:
        return projections.rebuild(*names)
    import cProfile

    profiler = cProfile.Profile()
    outcome = profiler.runcall(projections.rebuild, *names)
    profiler.print_stats("tottime")
    return outcome


if __name__ == "__main__":
    sys.exit(main())
