"""How late handlers start: from the fire time to the attempt that the log has before the handler.

    python bench/lateness.py [--rates 200,1000] [--seconds 60] [--others N] [--runs N] [--json FILE]

One scanner and one worker process, as production runs them. All jobs are there before; a second
column of figures is of jobs that were registered 50 ms ahead of their time, while the wheel was
loaded. ``--others 1000000`` (or 10000000) has so many jobs of the far future stand beside them. The
limit is two commits of one row, one after the other, at the same instants on the same server:
nothing that writes a claim and an attempt before it runs a handler can be faster.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.many_jobs import fill_jobs
from bench.scanner_stage import WORKER, Stage, options, quantile, show, stage

from horolog import Once, Scheduler
from horolog.interface.settings import Settings

AHEAD_S = 0.05
FAR = timedelta(days=30)


def two_commits_ms(bench: Stage, rate: int, seconds: float) -> list[float]:
    """How late the second of two commits is that begin at an instant; sorted."""
    connection = bench.connection
    connection.execute("CREATE TABLE IF NOT EXISTS bench_two_commits (at timestamptz)")
    late: list[float] = []
    begin = time.perf_counter() + 0.1
    for number in range(int(min(rate, 200) * seconds)):
        due = begin + number / min(rate, 200)
        time.sleep(max(0.0, due - time.perf_counter()))
        for _ in range(2):
            connection.execute("INSERT INTO bench_two_commits VALUES (now())")
        late.append((time.perf_counter() - due) * 1e3)
    return sorted(late)


def beside(bench: Stage, others: int) -> Settings:
    """A namespace that holds so many jobs of the far future, for all runs."""
    settings = bench.fresh()
    if others:
        database = bench.database(settings)
        fill_jobs(database, others, begin=datetime.now(UTC) + FAR, spread_s=86_400 * 300)
        database.close()
        bench.connection.execute("CHECKPOINT")
    return settings


def measure(
    bench: Stage, settings: Settings, rate: int, seconds: float, others: int
) -> dict[str, float]:
    database = bench.database(settings)
    # Filling takes its time, and so do the indexes that it makes anew of everything.
    filling_s = rate * seconds / 20_000 + others / 150_000
    begin = datetime.now(UTC) + timedelta(seconds=12 + filling_s)
    fill_jobs(database, int(rate * seconds), begin=begin, spread_s=seconds)
    database.close()
    with bench.running(settings, ["scanner"], WORKER), Scheduler(settings=settings) as scheduler:
        bench.until_led(settings)
        assert datetime.now(UTC) < begin, "the processes were slower than expected"
        end = begin + timedelta(seconds=seconds)
        near = Thread(target=_register_near, args=(scheduler, begin, end))
        near.start()
        near.join()
        bench.until(
            settings,
            "SELECT NOT EXISTS (SELECT FROM :schema.next_runs WHERE due_at < %s)",
            (end + timedelta(days=1),),
        )
    # The first second belongs to the interpreters that warm up.
    since = begin + timedelta(seconds=1)
    late = bench.lateness(settings, "ping", since)
    told = bench.lateness(settings, "echo", since)
    return {
        "p50 ms": quantile(late, 0.5) * 1e3,
        "p99 ms": quantile(late, 0.99) * 1e3,
        "worst ms": late[-1] * 1e3,
        "told p50 ms": quantile(told, 0.5) * 1e3,
        "told p99 ms": quantile(told, 0.99) * 1e3,
    }


def _register_near(scheduler: Scheduler, begin: datetime, end: datetime) -> None:
    """Jobs that are told to the scanner when it is nearly time, ten a second."""
    time.sleep(max(0.0, (begin - datetime.now(UTC)).total_seconds()))
    while (now := datetime.now(UTC)) < end:
        scheduler.register("echo", schedule=Once(now + timedelta(seconds=AHEAD_S)))
        time.sleep(0.1)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rates", default="200,1000")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--others", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with stage() as bench:
        settings = beside(bench, given.others)
        for rate in map(int, given.rates.split(",")):
            limits: list[list[float]] = []
            found: list[dict[str, float]] = []
            for _ in range(given.runs):
                limits.append(two_commits_ms(bench, rate, 5.0))
                found.append(measure(bench, settings, rate, given.seconds, given.others))
            row: dict[str, Any] = {"what": f"{rate}/s beside {given.others:,}"}
            row |= {name: median(one[name] for one in found) for name in found[0]}
            row["limit p50 ms"] = median(quantile(one, 0.5) for one in limits)
            row["limit p99 ms"] = median(quantile(one, 0.99) for one in limits)
            rows.append(row)
    show("from fire time to the handler's start", rows, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
