"""What it costs to ask what was: the index and all jobs as they were at an instant.

    python bench/time_travel.py [--jobs N] [--rounds N] [--home DIR [--fill-only]] [--json FILE]

100,000 jobs that have each run three times in ten days, unless told otherwise; many were paused
since. Each question is asked at three instants, by the
public API; the target for each answer is 5 seconds.
"""

import argparse
import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kept import add_options, kept_log

from horolog import Scheduler

TARGET_S = 5.0


def all_jobs(scheduler: Scheduler, moment: datetime | None) -> int:
    """Every page of the jobs as they were, or are; how many there were."""
    found, after = 0, UUID(int=0)
    while page := scheduler.jobs(as_of=moment, after=after, limit=10_000):
        found, after = found + len(page), page[-1].id
    return found


def asks(scheduler: Scheduler, moment: datetime) -> dict[str, Callable[[], int]]:
    """The questions; the last is the listing of the present, to hold the others against."""
    return {
        "due_at(T), 1,000 entries": lambda: len(scheduler.due_at(moment, limit=1_000)),
        "jobs(as_of=T), 100": lambda: len(scheduler.jobs(as_of=moment)),
        "jobs(as_of=T), 10,000": lambda: len(scheduler.jobs(as_of=moment, limit=10_000)),
        "jobs(as_of=T), all in pages": lambda: all_jobs(scheduler, moment),
        "jobs(), all in pages": lambda: all_jobs(scheduler, None),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    add_options(parser)
    given = parser.parse_args()
    times: dict[str, list[float]] = {}
    with (
        kept_log(given.home, jobs=given.jobs, rounds=given.rounds, days=10.0) as kept,
        Scheduler(settings=kept.settings) as scheduler,
    ):
        filled = kept.filled
        for job in scheduler.jobs(status="active", limit=1_000):
            scheduler.pause(job.id)
        if given.fill_only:
            return 0
        for part in (0.2, 0.5, 0.9):
            moment = filled.begin + (filled.end - filled.begin) * part
            for name, ask in asks(scheduler, moment).items():
                began = perf_counter()
                assert ask() > 0
                times.setdefault(name, []).append(perf_counter() - began)
    print(f"{filled.jobs:,} jobs, {filled.events:,} events")
    for name, found in times.items():
        target = "" if name == "jobs(), all in pages" else f", ≤ {TARGET_S:g} s"
        figures = f"median {median(found):6.2f} s, slowest {max(found):6.2f} s"
        print(f"{name:<28} {figures}{target}")
    if given.json is not None:
        given.json.write_text(json.dumps({"jobs": filled.jobs, "s": times}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
