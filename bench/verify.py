"""What `horolog verify` costs: events per second and memory, over the whole log and the index.

    python bench/verify.py [--events N] [--jobs N] [--home DIR [--fill-only]] [--shares N]
                            [--json FILE]

The log is filled as bench/filled_log.py does it, and holds: a violation is a failure of this bench.
Beside it in the same run: the rows that the same server and driver hand out, unread. CPU is that of
all processes of the check, and of all of the server's, for each event of the log.
"""

import argparse
import json
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.kept import Kept, add_options, kept_log
from bench.whole_path import postgres_cpu_s

from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.interface.verification import verify_log
from horolog.interface.verification_shares import shares_for

TARGET_EVENTS_PER_S = 100_000


def rows_per_s(kept: Kept, events: int) -> float:
    """The limit: the same pages, and nothing done with them."""
    scan, after, seen = PostgresLogScan(kept.database), 0, 0
    began = perf_counter()
    while seen < events and (page := scan.page(after, 5_000)):
        after, seen = page[-1].position, seen + len(page)
    return seen / (perf_counter() - began)


def _cpu_s(kept: Kept) -> tuple[float, float]:
    """CPU seconds so far: of this process and its children that have ended, and of the server."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    with kept.database.connection() as connection:
        return process_time() + children.ru_utime + children.ru_stime, postgres_cpu_s(connection)


def _memory_mb(of: int) -> int:
    return resource.getrusage(of).ru_maxrss // 1024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=20, help="runs in an append")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--shares", type=int, help="processes; else as `horolog verify` does")
    parser.add_argument("--json", type=Path)
    add_options(parser)
    given = parser.parse_args()
    rounds = max(1, given.events // (3 * given.jobs))
    with kept_log(
        given.home, jobs=given.jobs, rounds=rounds, days=given.days, batch=given.batch
    ) as kept:
        if given.fill_only:
            return 0
        limit = rows_per_s(kept, 500_000)
        shares = given.shares or shares_for(log_position(kept.database))
        began, before = perf_counter(), _cpu_s(kept)
        report = verify_log(kept.settings, shares=shares)
        seconds, after = perf_counter() - began, _cpu_s(kept)
        ours, postgres = ((after[i] - before[i]) / report.events * 1e6 for i in range(2))
        children = _memory_mb(resource.RUSAGE_CHILDREN) if shares > 1 else 0
    row = {
        "events": report.events,
        "seconds": round(seconds, 1),
        "events_per_s": round(report.events / seconds),
        "target": TARGET_EVENTS_PER_S,
        "cpu_us_per_event": round(ours, 2),
        "postgres_cpu_us_per_event": round(postgres, 2),
        "rows_per_s_unread": round(limit),
        "violations": len(report.violations),
        "processes": shares,
        "memory_mb_of_the_largest": max(_memory_mb(resource.RUSAGE_SELF), children),
    }
    print(json.dumps(row, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(row, indent=1))
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
