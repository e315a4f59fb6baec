"""How soon others go on after a leader was killed, and after all of them were away for a day.

    python bench/takeover.py [--horizon N] [--lease S] [--due N] [--runs N] [--json FILE]

`killed`: two scanners share 64 partitions, 100,000 jobs lie in the horizon, some are due ten times
a second; one scanner gets SIGKILL. Seconds from there to the first claim in a partition that it
led. `outage`: 1,000,000 jobs fell due over the last 24 hours in half of the partitions; seconds
from the announcement of the first scanner to its first claim, its peak memory, and how late jobs of
the other half start meanwhile. The limit of both is one commit of one row on the same server.
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.lateness import two_commits_ms
from bench.many_jobs import fill_jobs
from bench.scanner_stage import WORKER, Stage, options, peak_mb, quantile, show, stage

DAY_S = 86_400.0
LIVE_S = 30.0
LIVE_RATE = 20


def killed_s(bench: Stage, horizon: int, lease_s: float) -> float:
    settings = bench.fresh()
    database = bench.database(settings)
    now = datetime.now(UTC)
    steady = now + timedelta(seconds=10 + horizon / 20_000)
    fill_jobs(database, int(60 + 4 * lease_s) * 640, begin=steady, spread_s=60 + 4 * lease_s)
    soon = steady + timedelta(seconds=30 + 2 * lease_s)
    fill_jobs(database, horizon, begin=soon, spread_s=25.0)
    database.close()
    command = ["scanner", "--set", f"lease_s={lease_s}", "--set", "ahead_first=1000000"]
    with bench.running(settings, command, command) as (victim, _):
        bench.until_led(settings)
        share = "SELECT count(*) = 2 FROM (SELECT instance FROM :schema.partitions GROUP BY 1"
        bench.until(settings, f"{share} HAVING count(*) = 32) halves")
        bench.until(settings, "SELECT clock_timestamp() > %s", (steady + timedelta(seconds=3),))
        pid = str(victim.process.pid)
        led = [
            partition
            for partition, instance in bench.ask(
                settings, "SELECT partition, instance FROM :schema.partitions"
            )
            if instance is not None and pid in instance.split(":")
        ]
        assert led
        newest = max(bench.ask(settings, "SELECT max(position) FROM :schema.log")[0])
        victim.process.kill()
        killed = datetime.now(UTC)
        claimed = bench.until(
            settings,
            "SELECT min(recorded_at) FROM :schema.log WHERE topic = 'occurrence.claimed.1'"
            " AND position > %s AND (state ->> 'partition')::int = ANY (%s) AND actor NOT LIKE %s",
            (newest, led, f"%:{pid}:%"),
        )
        return (claimed - killed).total_seconds()


def outage(bench: Stage, due: int) -> dict[str, float]:
    settings = bench.fresh()
    database = bench.database(settings)
    now = datetime.now(UTC)
    fill_jobs(
        database, due, begin=now - timedelta(seconds=DAY_S), spread_s=DAY_S - 1, name="echo",
        partitions=range(32),
    )  # fmt: skip
    live = datetime.now(UTC) + timedelta(seconds=15)
    fill_jobs(
        database, int(LIVE_S * LIVE_RATE), begin=live, spread_s=LIVE_S, partitions=range(32, 64)
    )
    database.close()
    began = time.perf_counter()
    with bench.running(settings, ["scanner"], WORKER) as (scanner, _):
        first = bench.until(
            settings,
            "SELECT min(recorded_at) FROM :schema.log WHERE topic = 'occurrence.claimed.1'",
        )
        spawned_s = time.perf_counter() - began
        started = bench.ask(
            settings, "SELECT started_at FROM :schema.instances WHERE role = 'scanner'"
        )[0][0]
        bench.until(
            settings,
            "SELECT count(*) = %s FROM :schema.executions x JOIN :schema.jobs j ON j.id = x.job_id"
            " WHERE j.name = 'ping'",
            (int(LIVE_S * LIVE_RATE),),
        )
        memory = peak_mb(scanner.process.pid)
    late = bench.lateness(settings, "ping", live)
    return {
        "first claim s": (first - started).total_seconds(),
        "from its spawning s": spawned_s,
        "peak MB": memory,
        "live p50 ms": quantile(late, 0.5) * 1e3,
        "live p99 ms": quantile(late, 0.99) * 1e3,
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--horizon", type=int, default=100_000)
    parser.add_argument("--lease", type=float, default=10.0)
    parser.add_argument("--due", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", choices=["killed", "outage"])
    given = parser.parse_args()
    with stage() as bench:
        limit = quantile(two_commits_ms(bench, 100, 3.0), 0.5) / 2
        rows: list[dict[str, Any]] = []
        if given.only != "outage":
            times = [killed_s(bench, given.horizon, given.lease) for _ in range(given.runs)]
            name = f"s from SIGKILL to the first claim, lease {given.lease:g} s"
            rows.append({"what": name, "figure": f"{median(times):.2f}", "limit ms": limit})
        if given.only != "killed":
            for name, figure in outage(bench, given.due).items():
                what = f"outage, {given.due:,} due: {name}"
                rows.append({"what": what, "figure": f"{figure:.2f}", "limit ms": limit})
    show("taking over", rows, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
