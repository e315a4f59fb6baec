"""A long log without having lived it: recurring jobs whose runs were claimed, attempted, finished.

Written by SQL in the order of time, with the rows of the read models beside it, as the appends
would have left them: one run after the other at equal distances up to now, the jobs taking turns.
Every fiftieth run failed and is dead. Each job has dropped a range of fire times before its first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from psycopg.types.numeric import Int8

from horolog.infrastructure.postgres.database import Database

PIECE = 100_000

_NAMED = """
    CREATE OR REPLACE FUNCTION pg_temp.said(moment timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
    CREATE OR REPLACE FUNCTION pg_temp.job(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT (substr(md5('job' || n), 1, 12) || '8' || substr(md5('job' || n), 14, 3) || '8'
                  || substr(md5('job' || n), 18))::uuid $$;
    CREATE OR REPLACE FUNCTION pg_temp.run(i bigint, fire timestamptz) RETURNS uuid
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT (lpad(to_hex(floor(extract(epoch FROM fire) * 1000)::bigint), 12, '0') || '8'
                  || substr(md5('run' || i), 1, 3) || '8' || substr(md5('run' || i), 5, 15))::uuid
    $$;
    CREATE OR REPLACE FUNCTION pg_temp.fire(i bigint) RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT current_setting('bench.start')::timestamptz
                 + i * current_setting('bench.gap')::interval $$
"""
_JOB_EVENTS = """
    INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)
    SELECT %(jobs)s * (v.version - 1) + n + 1,
           pg_temp.fire(0) - interval '1 hour' + interval '1 us' * (%(jobs)s * (v.version - 1) + n),
           pg_temp.job(n), v.version, v.topic, convert_to(CASE v.version
               WHEN 1 THEN json_build_object('actor', 'bench', 'partition', n %% 64,
                   'key', 'key-' || n,
                   'next_fire', pg_temp.said(pg_temp.fire(n) - interval '90 min'),
                   'tzdata', '2025.2', 'definition', json_build_object(
                       'name', 'handler.' || n %% 100, 'queue', 'queue-' || n %% 10,
                       'owner', 'team-' || n %% 20, 'labels', json_build_object('n', n::text),
                       'payload', json_build_object('n', n), 'schedule', json_build_object(
                           'kind', 'every', 'seconds', %(step)s::float8,
                           'anchor', pg_temp.said(pg_temp.fire(n)))))
               ELSE json_build_object('actor', 'bench', 'cause', 'paused', 'count', 3,
                   'first', pg_temp.said(pg_temp.fire(n) - interval '90 min'),
                   'last', pg_temp.said(pg_temp.fire(n) - interval '80 min'),
                   'next_fire', pg_temp.said(pg_temp.fire(n)), 'tzdata', '2025.2')
               END::text, 'UTF8')
    FROM generate_series(0::bigint, %(jobs)s - 1) n,
         (VALUES (1, 'job.registered.1'), (2, 'job.fires_skipped.1')) AS v (version, topic)
    ORDER BY 1
"""
_JOBS = """
    INSERT INTO :schema.jobs (id, key, version, status, partition, name, queue, owner, labels,
                              definition, held_fire, fires, registered_at, changed_at)
    SELECT e.stream, d.said ->> 'key', 2, 'active', (d.said ->> 'partition')::smallint,
           d.said -> 'definition' ->> 'name', d.said -> 'definition' ->> 'queue',
           d.said -> 'definition' ->> 'owner', d.said -> 'definition' -> 'labels',
           (d.said -> 'definition')::json, NULL, 0, e.recorded_at, e.recorded_at
    FROM :schema.job_events e CROSS JOIN LATERAL (SELECT :schema.decoded(e.state) AS said) d
    WHERE e.topic = 'job.registered.1'
"""
_NEXT_RUNS = """
    INSERT INTO :schema.next_runs (due_at, fire_time, position, id, job_id, version, attempt,
                                   failures, fires, partition, look, state, kind)
    SELECT pg_temp.fire(%(rounds)s * %(jobs)s + n), pg_temp.fire(%(rounds)s * %(jobs)s + n), 1,
           pg_temp.job(n), pg_temp.job(n), 2, 0, 0, %(rounds)s, n %% 64, false, 'active', 'job'
    FROM generate_series(0::bigint, %(jobs)s - 1) n
"""
_RUN_EVENTS = """
    INSERT INTO :schema.occurrence_events (position, recorded_at, stream, version, topic, state)
    SELECT 2 * %(jobs)s + 3 * i + v.version,
           f.fire + least(interval '20 ms', f.gap / 4) * v.version,
           pg_temp.run(i, f.fire), v.version, v.topic, convert_to(CASE v.version
               WHEN 1 THEN json_build_object('actor', 'scanner/host-1', 'job_id',
                   pg_temp.job(i %% %(jobs)s), 'job_version', 2, 'fire_time', pg_temp.said(f.fire),
                   'attempt', 1, 'partition', i %% %(jobs)s %% 64, 'token', 1, 'window', 30.0,
                   'fires', i / %(jobs)s + 1, 'tzdata', '2025.2',
                   'next_fire', pg_temp.said(pg_temp.fire(i + %(jobs)s)))
               WHEN 2 THEN json_build_object('actor', 'worker/host-' || i %% 7, 'attempt', 1,
                                             'lease', 30.0)
               ELSE CASE WHEN i %% 50 = 0
                   THEN json_build_object('actor', 'worker/host-' || i %% 7, 'cause', 'hopeless',
                       'kind', 'permanent', 'error', 'no such card')
                   ELSE json_build_object('actor', 'worker/host-' || i %% 7, 'attempt', 1,
                       'seconds', 0.001 * (i %% 500), 'result', json_build_object('n', i)) END
               END::text, 'UTF8')
    FROM generate_series(%(low)s, %(high)s - 1) i
    CROSS JOIN LATERAL (SELECT pg_temp.fire(i) AS fire,
                               current_setting('bench.gap')::interval AS gap) f
    CROSS JOIN LATERAL (VALUES (1, 'occurrence.claimed.1'), (2, 'occurrence.attempted.1'),
        (3, CASE WHEN i %% 50 = 0 THEN 'occurrence.dead_lettered.1'
                 ELSE 'occurrence.succeeded.1' END)) AS v (version, topic)
"""
_EXECUTIONS = """
    INSERT INTO :schema.executions (finished_at, fire_time, id, job_id, version, attempt, failures,
                                    partition, state, kind)
    SELECT f.fire + least(interval '20 ms', f.gap / 4) * 3, f.fire, pg_temp.run(i, f.fire),
           pg_temp.job(i %% %(jobs)s), 3, 1, (i %% 50 = 0)::int, i %% %(jobs)s %% 64,
           CASE WHEN i %% 50 = 0 THEN 'dead' ELSE 'succeeded' END, 'schedule'
    FROM generate_series(%(low)s, %(high)s - 1) i
    CROSS JOIN LATERAL (SELECT pg_temp.fire(i) AS fire,
                               current_setting('bench.gap')::interval AS gap) f
"""


@dataclass(frozen=True)
class Filled:
    """What was written: runs of so many jobs between two instants."""

    jobs: int
    runs: int
    begin: datetime
    end: datetime

    @property
    def events(self) -> int:
        return 2 * self.jobs + 3 * self.runs


def fill(
    database: Database,
    *,
    jobs: int,
    rounds: int,
    days: float,
    watch: Callable[[int], None],
) -> Filled:
    """Fills a migrated, empty namespace: each of ``jobs`` has run ``rounds`` times in ``days``."""
    runs = jobs * rounds
    gap = timedelta(days=days) / runs
    end = datetime.now(UTC)
    begin = end - gap * runs
    step = (gap * jobs).total_seconds()
    values = {"jobs": Int8(jobs), "rounds": Int8(rounds), "step": step}
    with database.session() as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET plan_cache_mode = auto")
        for name, value in (("start", begin.isoformat()), ("gap", f"{gap.total_seconds():.6f} s")):
            connection.execute("SELECT set_config(%s, %s, false)", (f"bench.{name}", value))
        connection.execute(_NAMED, prepare=False)
        connection.execute(database.sql(_JOB_EVENTS), values)
        connection.execute(database.sql(_JOBS))
        connection.execute(database.sql(_NEXT_RUNS), values)
        for low in range(0, runs, PIECE):
            piece = {**values, "low": Int8(low), "high": Int8(min(low + PIECE, runs))}
            connection.execute(database.sql(_RUN_EVENTS), piece)
            connection.execute(database.sql(_EXECUTIONS), piece)
            watch(min(low + PIECE, runs))
        last = 2 * jobs + 3 * runs
        connection.execute(database.sql("SELECT setval(:positions, %s)"), (last,))
        tables = ("job_events", "occurrence_events", "jobs", "next_runs", "executions")
        for table in tables:
            connection.execute(database.sql(f"VACUUM ANALYZE :schema.{table}"))
    return Filled(jobs, runs, begin, end)
