"""What the log's answers cost: histories, pages of runs, skips and figures, on a long log.

    python bench/audit.py [--events N] [--jobs N] [--asks N] [--json FILE]
                           [--home DIR [--fill-only]]

A log of 1,000,000 events of 1,000 jobs over thirty days, unless told otherwise; the targets are for
10,000,000. Each question is asked of jobs and runs drawn at random, one after the other, by the
public API; the figures are milliseconds of the median and of the slowest of twenty.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.filled_log import Filled
from bench.kept import add_options, kept_log

from horolog import Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.position_at import PostgresPositions

TARGETS_MS = {"history of a job": 5.0, "history of a run": 5.0, "runs of a job, 100": 10.0}


Ask = Callable[[Random], Any]


def questions(scheduler: Scheduler, database: Database, filled: Filled) -> dict[str, Ask]:
    """Each question, asked anew about something drawn by the generator that it is given."""
    jobs = [job.id for job in scheduler.jobs(limit=min(filled.jobs, 10_000))]
    positions = PostgresPositions(database)
    span = filled.end - filled.begin
    step = span / (filled.runs // filled.jobs)
    drawn = Random(7)
    runs = [
        run.id
        for _ in range(200)
        for run in scheduler.executions(since=filled.begin + span * drawn.random(), limit=1)
    ]

    def moment(chance: Random) -> Any:
        return filled.begin + span * (0.9 * chance.random())

    asks: dict[str, Ask] = {
        "history of a job": lambda c: scheduler.history(c.choice(jobs)),
        "history of a run": lambda c: scheduler.history(c.choice(runs)),
        "changes of a job": lambda c: scheduler.changes(c.choice(jobs)),
        "explanation of a run": lambda c: scheduler.explain(c.choice(runs)),
        "runs of a job, 100": lambda c: scheduler.occurrences(
            job_id=c.choice(jobs), since=moment(c), limit=100
        ),
        "runs of a job, newest 100": lambda c: scheduler.occurrences(
            job_id=c.choice(jobs), newest_first=True, limit=100
        ),
        "audit: runs of a job, 100": lambda c: scheduler.executions(
            job_id=c.choice(jobs), since=moment(c), limit=100
        ),
        "audit: runs of all, 100": lambda c: scheduler.executions(since=moment(c), limit=100),
        "audit: runs of a handler, 100": lambda c: scheduler.executions(
            name=f"handler.{c.randrange(100)}", since=moment(c), limit=100
        ),
        "audit: dead runs, 100": lambda c: scheduler.executions(
            state="dead", since=moment(c), limit=100
        ),
        "audit: runs of a worker, 100": lambda c: scheduler.executions(
            worker=f"worker/host-{c.randrange(7)}", since=moment(c), limit=100
        ),
        "audit: runs that ended, 100": lambda c: scheduler.executions(
            by_end=True, since=moment(c), limit=100
        ),
        "audit: skips, 100": lambda _: scheduler.skips(limit=100),
        "audit: skips at an instant": lambda _: scheduler.skips(
            since=filled.begin - 1.5 * step, until=filled.begin - 1.5 * step + timedelta(minutes=1)
        ),
        "figures of a job, 30 days": lambda c: scheduler.statistics(job_id=c.choice(jobs)),
        "figures of all, one day": lambda c: scheduler.statistics(
            by="all", since=(t := moment(c)), until=t + timedelta(days=1)
        ),
        "a job at an instant": lambda c: scheduler.job(c.choice(jobs), as_of=moment(c)),
        "the position at an instant": lambda c: positions.position_at(moment(c)),
    }
    return asks


def measured(ask: Ask, asks: int) -> list[float]:
    """Milliseconds of each answer, the first two apart: they plan and fetch."""
    chance = Random(1)
    times: list[float] = []
    for _ in range(asks + 2):
        began = perf_counter()
        ask(chance)
        times.append((perf_counter() - began) * 1e3)
    return times[2:]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--batch", type=int, default=1, help="runs in an append")
    add_options(parser)
    given = parser.parse_args()
    rounds = max(1, given.events // (3 * given.jobs))
    with kept_log(
        given.home, jobs=given.jobs, rounds=rounds, days=given.days, batch=given.batch
    ) as kept:
        if given.fill_only:
            return 0
        filled = kept.filled
        with Scheduler(settings=kept.settings) as scheduler:
            asked = questions(scheduler, kept.database, filled)
            times = {name: measured(ask, given.asks) for name, ask in asked.items()}
    show(times, filled)
    if given.json is not None:
        given.json.write_text(json.dumps({"events": filled.events, "ms": times}, indent=1))
    return 0


def show(times: dict[str, list[float]], filled: Filled) -> None:
    table = Table(title=f"{filled.events:,} events of {filled.jobs:,} jobs; milliseconds")
    table.add_column("question")
    for heading in ("median", "slowest", "target"):
        table.add_column(heading, justify="right")
    for name, found in times.items():
        target = TARGETS_MS.get(name)
        table.add_row(
            name,
            f"{median(found):.2f}",
            f"{max(found):.2f}",
            "" if target is None else f"≤ {target:g}",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    sys.exit(main())
