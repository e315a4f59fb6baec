"""What a scanner costs while nothing is due, and how much memory it takes.

    python bench/idle.py [--jobs N] [--horizon N] [--seconds S] [--runs N] [--json FILE]

1,000,000 jobs of the far future, unless told otherwise: the CPU of the scanner and of Postgres, and
queries a second, with autovacuum off meanwhile (its transactions cannot be told apart). Then
100,000 of them are due within the horizon, and its memory is looked at when they are in the wheel.
Medians of the runs, each with a scanner of its own. The limit is the same server and a client that
asks nothing.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.many_jobs import fill_jobs
from bench.scanner_stage import Stage, options, peak_mb, resident_mb, show, stage
from bench.whole_path import cpu_s, postgres_cpu_s

from horolog.interface.settings import Settings

SETTLING_S = 20.0
"""Until statistics of what was before have arrived, and a new leader has looked around."""

_ASKED = (
    "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
)


def _spent(bench: Stage, settings: Settings, pid: int | None, seconds: float) -> dict[str, float]:
    """Percent of a core, and transactions a second, over some seconds."""
    connection = bench.connection
    connection.execute("SELECT pg_stat_clear_snapshot()")
    before = bench.ask(settings, _ASKED)[0][0]
    postgres, own = postgres_cpu_s(connection), cpu_s(pid) if pid else 0.0
    began = time.perf_counter()
    time.sleep(seconds)
    elapsed = time.perf_counter() - began
    after = bench.ask(settings, _ASKED)[0][0]
    return {
        "scanner % of a core": ((cpu_s(pid) if pid else 0.0) - own) / elapsed * 100,
        "Postgres % of a core": (postgres_cpu_s(connection) - postgres) / elapsed * 100,
        "queries/s": (after - before) / elapsed,
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--horizon", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with stage() as bench:
        settings = bench.fresh()
        database = bench.database(settings)
        far = datetime.now(UTC) + timedelta(days=1)
        fill_jobs(database, given.jobs - given.horizon, begin=far, spread_s=86_400 * 300)
        bench.connection.execute("ALTER SYSTEM SET autovacuum = off")
        bench.connection.execute("SELECT pg_reload_conf()")
        time.sleep(SETTLING_S)
        nothing = _spent(bench, settings, None, given.seconds / 3)
        found: list[dict[str, float]] = []
        for _ in range(given.runs):
            with bench.running(settings, ["scanner"]) as (scanner,):
                bench.until_led(settings)
                time.sleep(SETTLING_S)
                idle = _spent(bench, settings, scanner.process.pid, given.seconds)
                found.append(idle | {"resident MB": resident_mb(scanner.process.pid)})
        idle = {name: median(one[name] for one in found) for name in found[0]}
        rows.append({"what": f"idle beside {given.jobs - given.horizon:,}"} | idle)
        rows.append({"what": "limit: no scanner"} | nothing | {"resident MB": 0.0})
        soon = datetime.now(UTC) + timedelta(seconds=45)
        fill_jobs(database, given.horizon, begin=soon, spread_s=15.0)
        with bench.running(settings, ["scanner", "--set", "horizon_s=120"]) as (scanner,):
            bench.until(
                settings,
                "SELECT (details ->> 'wheel')::int >= %s FROM :schema.instances"
                " ORDER BY started_at DESC LIMIT 1",
                (given.horizon,),
            )
            loaded = {"resident MB": peak_mb(scanner.process.pid)}
        none = dict.fromkeys(idle, 0.0)
        rows.append({"what": f"{given.horizon:,} in the wheel (peak)"} | none | loaded)
        database.close()
    show("a scanner with nothing to do", rows, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
