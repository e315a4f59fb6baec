"""What a rebuild costs: events per second, memory, and how long the log lock is held.

    python bench/rebuild.py [--events N] [--jobs N] [--projections NAMES] [--json FILE]

Writes a log of recurring jobs whose occurrences were claimed, attempted and succeeded, in
batches of a hundred, as a busy system leaves it; builds the read models from it once, so that they
are what the log says; and measures a rebuild that finds no difference.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.projections import Projections

BATCH = 100

_JOBS = """
    INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)
    SELECT n + 1, date_trunc('month', now(), 'UTC') + interval '1 ms' * (n / %(batch)s),
           md5('job' || n)::uuid, 1, 'job.registered.1',
           convert_to(json_build_object(
               'actor', 'bench', 'partition', n %% 64, 'tzdata', '2025.2',
               'next_fire', to_char(date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC',
                                    'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
               'definition', json_build_object(
                   'name', 'bench.job', 'payload', json_build_object('n', n),
                   'schedule', json_build_object('kind', 'every', 'seconds', 60.0)))::text, 'UTF8')
    FROM generate_series(0, %(jobs)s - 1) n
"""
# One round fires every job once: claims, attempts and successes of a hundred jobs, one append each.
_ROUND = """
    INSERT INTO :schema.occurrence_events (position, recorded_at, stream, version, topic, state)
    SELECT %(base)s + (n / %(batch)s) * 3 * %(batch)s + kind * %(batch)s + n %% %(batch)s + 1,
           date_trunc('month', now(), 'UTC') + interval '1 ms' *
               (%(base)s / %(batch)s + (n / %(batch)s) * 3 + kind),
           (lpad(to_hex((extract(epoch FROM f.fire) * 1000)::bigint), 12, '0')
            || substr(md5(n || '/' || %(round)s), 1, 20))::uuid,
           kind + 1,
           (ARRAY['occurrence.claimed.1', 'occurrence.attempted.1', 'occurrence.succeeded.1'])
               [kind + 1],
           convert_to(CASE kind
               WHEN 0 THEN json_build_object(
                   'actor', 'scanner:1:abcd', 'job_id', md5('job' || n)::uuid, 'job_version', 1,
                   'fire_time', to_char(f.fire AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'attempt', 1, 'partition', n %% 64, 'token', 1, 'window', 30.0,
                   'fires', %(round)s + 1, 'tzdata', '2025.2',
                   'next_fire', to_char((f.fire + interval '1 min') AT TIME ZONE 'UTC',
                                        'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
               WHEN 1 THEN json_build_object('actor', 'worker:1:abcd', 'attempt', 1, 'lease', 30.0)
               ELSE json_build_object('actor', 'worker:1:abcd', 'attempt', 1, 'seconds', 0.012,
                                      'result', json_build_object('n', n)) END::text, 'UTF8')
    FROM generate_series(0, %(jobs)s - 1) n CROSS JOIN generate_series(0, 2) kind
    CROSS JOIN LATERAL (SELECT date_trunc('month', now(), 'UTC')
                               + interval '1 min' * %(round)s AS fire) f
"""


def write_log(database: Database, events: int, jobs: int) -> int:
    """The log; returns how many events it has."""
    with database.session() as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET synchronous_commit = off")
        params: dict[str, Any] = {"jobs": jobs, "batch": BATCH}
        connection.execute(database.sql(_JOBS), params)
        written, number = jobs, 0
        while written < events:
            connection.execute(database.sql(_ROUND), {**params, "base": written, "round": number})
            written, number = written + 3 * jobs, number + 1
        connection.execute(database.sql("SELECT setval(:positions, %s)"), (written,))
        for table in ("job_events", "occurrence_events"):
            connection.execute(database.sql(f"VACUUM ANALYZE :schema.{table}"))
        connection.execute("CHECKPOINT")
    return written


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--window", type=int, default=30_000)
    parser.add_argument("--projections", default="next_runs", help="comma-separated; 'all' for all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    names = () if arguments.projections == "all" else tuple(arguments.projections.split(","))
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        try:
            url = servers.ensure().database_url
            database = Database(url, "bench")
            migrate(database)
            started = time.monotonic()
            events = write_log(database, arguments.events, arguments.jobs)
            print(f"{events:,} events of {arguments.jobs:,} jobs written in"
                  f" {time.monotonic() - started:.0f} s")  # fmt: skip
            with Projections(url, namespace="bench", window=arguments.window) as projections:
                first = projections.rebuild()
                print(f"first, everything: {first.events / first.seconds:,.0f} events/s,"
                      f" {first.difference_count:,} rows, log lock held for"
                      f" {first.longest_hold_s * 1e3:.1f} ms")  # fmt: skip
                cpu = time.process_time()
                if arguments.profile:
                    import cProfile

                    profiler = cProfile.Profile()
                    outcome = profiler.runcall(projections.rebuild, *names)
                    profiler.print_stats("tottime")
                else:
                    outcome = projections.rebuild(*names)
                cpu = time.process_time() - cpu
            database.close()
        finally:
            servers.stop()
    row = {
        "projections": outcome.projections,
        "events": outcome.events,
        "seconds": outcome.seconds,
        "events_per_s": round(outcome.events / outcome.seconds),
        "python_cpu_us_per_event": round(cpu / outcome.events * 1e6, 2),
        "differences": outcome.difference_count,
        "lock_held_ms": round(outcome.longest_hold_s * 1e3, 1),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(row, indent=1))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(row, indent=1))
    return 1 if outcome.difference_count else 0


if __name__ == "__main__":
    sys.exit(main())
