"""A long log without having lived it: recurring jobs whose runs were claimed, attempted, finished.

Written by SQL in the order of time, with the rows of the read models beside it, as the appends
would have left them: one run after the other at equal distances up to now, the jobs taking turns,
``batch`` of them in an append. Every fiftieth run failed and is dead. Each job has dropped a range
of fire times before its first. Each partition has had one leader. There is no hash chain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import md5
from uuid import UUID

from psycopg.types.numeric import Int8

from horolog.domain.ids import occurrence_id
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.projections.changes import PROJECTIONS

PIECE = 100_000
PARTITIONS = 64

_NAMED = """
    CREATE OR REPLACE FUNCTION pg_temp.said(moment timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
    CREATE OR REPLACE FUNCTION pg_temp.job(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
    AS $$ SELECT (substr(md5('job' || n), 1, 12) || '8' || substr(md5('job' || n), 14, 3) || '8'
                  || substr(md5('job' || n), 18))::uuid $$;
    CREATE OR REPLACE FUNCTION pg_temp.compact(said json) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT replace(replace(said::text, '" : ', '":'), ', "', ',"') $$;
    CREATE OR REPLACE FUNCTION pg_temp.appended(i bigint) RETURNS bigint LANGUAGE sql STABLE
    AS $$ SELECT i / b.size * b.size + b.size - 1
          FROM (SELECT current_setting('bench.batch')::bigint AS size) b $$;
    CREATE OR REPLACE FUNCTION pg_temp.fire(i bigint) RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT current_setting('bench.start')::timestamptz
                 + i * current_setting('bench.gap')::interval $$
"""
_JOB_EVENTS = """
    INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)
    SELECT %(first)s + %(jobs)s * (v.version - 1) + n + 1,
           pg_temp.fire(0) - interval '1 hour' + interval '1 us' * (%(jobs)s * (v.version - 1) + n),
           pg_temp.job(n), v.version, v.topic, convert_to(pg_temp.compact(CASE v.version
               WHEN 1 THEN json_build_object('actor', 'bench', 'partition', n %% 64,
                   'key', 'key-' || n,
                   'next_fire', pg_temp.said(pg_temp.fire(n - 3 * %(jobs)s)),
                   'tzdata', '2025.2', 'definition', json_build_object(
                       'name', 'handler.' || n %% 100, 'schedule', json_build_object(
                           'kind', 'every', 'seconds', %(step)s::float8,
                           'anchor', pg_temp.said(pg_temp.fire(n - 3 * %(jobs)s))),
                       'payload', json_build_object('n', n), 'queue', 'queue-' || n %% 10,
                       'owner', 'team-' || n %% 20, 'labels', json_build_object('n', n::text)))
               ELSE json_build_object('actor', 'bench', 'cause', 'paused', 'count', 3, 'fires', 3,
                   'first', pg_temp.said(pg_temp.fire(n - 3 * %(jobs)s)),
                   'last', pg_temp.said(pg_temp.fire(n - %(jobs)s)),
                   'next_fire', pg_temp.said(pg_temp.fire(n)), 'tzdata', '2025.2')
               END), 'UTF8')
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
           pg_temp.compact((convert_from(e.state, 'UTF8')::json) -> 'definition')::json,
           NULL, 3, e.recorded_at, e.recorded_at + interval '1 us' * %(jobs)s
    FROM :schema.job_events e CROSS JOIN LATERAL (SELECT :schema.decoded(e.state) AS said) d
    WHERE e.topic = 'job.registered.1'
"""
_NEXT_RUNS = """
    INSERT INTO :schema.next_runs (due_at, fire_time, position, id, job_id, version, attempt,
                                   failures, fires, partition, look, state, kind)
    SELECT pg_temp.fire(%(rounds)s * %(jobs)s + n), pg_temp.fire(%(rounds)s * %(jobs)s + n),
           %(first)s + 2 * %(jobs)s
               + 3 * (pg_temp.appended((%(rounds)s - 1) * %(jobs)s + n) + 1) - 2 * %(batch)s,
           pg_temp.job(n), pg_temp.job(n), 2, 0, 0, %(rounds)s + 3, n %% 64, false, 'active', 'job'
    FROM generate_series(0::bigint, %(jobs)s - 1) n
"""
_RUN_EVENTS = """
    INSERT INTO :schema.occurrence_events (position, recorded_at, stream, version, topic, state)
    SELECT %(first)s + 2 * %(jobs)s + 3 * (i - i %% %(batch)s) + (v.version - 1) * %(batch)s
               + i %% %(batch)s + 1,
           pg_temp.fire(pg_temp.appended(i)) + least(interval '20 ms', f.gap / 4) * v.version,
           r.id, v.version, v.topic, convert_to(pg_temp.compact(CASE v.version
               WHEN 1 THEN json_build_object('actor', 'scanner/host-1', 'job_id',
                   pg_temp.job(i %% %(jobs)s), 'job_version', 2, 'fire_time', pg_temp.said(f.fire),
                   'attempt', 1, 'partition', i %% %(jobs)s %% 64, 'token', 1, 'window', 30.0,
                   'fires', i / %(jobs)s + 4, 'tzdata', '2025.2',
                   'next_fire', pg_temp.said(pg_temp.fire(i + %(jobs)s)))
               WHEN 2 THEN json_build_object('actor', 'worker/host-' || i %% 7, 'attempt', 1,
                                             'lease', 30.0)
               ELSE CASE WHEN i %% 50 = 0
                   THEN json_build_object('actor', 'worker/host-' || i %% 7, 'cause', 'hopeless',
                       'kind', 'permanent', 'error', 'no such card')
                   ELSE json_build_object('actor', 'worker/host-' || i %% 7, 'attempt', 1,
                       'seconds', 0.001 * (i %% 500), 'result', json_build_object('n', i)) END
               END), 'UTF8')
    FROM pg_temp.runs r CROSS JOIN LATERAL (SELECT r.number AS i) n
    CROSS JOIN LATERAL (SELECT pg_temp.fire(i) AS fire,
                               current_setting('bench.gap')::interval AS gap) f
    CROSS JOIN LATERAL (VALUES (1, 'occurrence.claimed.1'), (2, 'occurrence.attempted.1'),
        (3, CASE WHEN i %% 50 = 0 THEN 'occurrence.dead_lettered.1'
                 ELSE 'occurrence.succeeded.1' END)) AS v (version, topic)
"""
_EXECUTIONS = """
    INSERT INTO :schema.executions (finished_at, fire_time, id, job_id, version, attempt, failures,
                                    partition, state, kind)
    SELECT pg_temp.fire(pg_temp.appended(i)) + least(interval '20 ms', f.gap / 4) * 3, f.fire,
           r.id,
           pg_temp.job(i %% %(jobs)s), 3, 1, 0, i %% %(jobs)s %% 64,
           CASE WHEN i %% 50 = 0 THEN 'dead' ELSE 'succeeded' END, 'schedule'
    FROM pg_temp.runs r CROSS JOIN LATERAL (SELECT r.number AS i) n
    CROSS JOIN LATERAL (SELECT pg_temp.fire(i) AS fire,
                               current_setting('bench.gap')::interval AS gap) f
"""
_DEAD_LETTERS = """
    INSERT INTO :schema.dead_letters (id, job_id, name, owner, cause, kind, error, attempt,
                                      fire_time, since)
    SELECT x.id, x.job_id, j.name, NULL, 'hopeless', 'permanent', 'no such card', 1,
           x.fire_time, x.finished_at
    FROM :schema.executions x JOIN :schema.jobs j ON j.id = x.job_id WHERE x.state = 'dead'
"""
_ELECTED = """
    INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)
    SELECT p.partition + 1, pg_temp.fire(0) - interval '2 hours', p.stream, 1,
           'partition.elected.1', convert_to(json_build_object('actor', 'scanner/host-1',
               'partition', p.partition, 'instance', 'scanner/host-1', 'lease', 10.0)::text, 'UTF8')
    FROM :schema.partitions p
"""
_LED = """
    UPDATE :schema.partitions SET version = 1, token = 1, instance = 'scanner/host-1',
           published = %(last)s
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
        return PARTITIONS + 2 * self.jobs + 3 * self.runs


def fill(
    database: Database,
    *,
    jobs: int,
    rounds: int,
    days: float,
    watch: Callable[[int], None],
    batch: int = 1,
) -> Filled:
    """Fills a migrated, empty namespace: each of ``jobs`` has run ``rounds`` times in ``days``.

    ``jobs`` are a multiple of ``batch``, the runs that were claimed, begun and ended together.
    """
    assert jobs % batch == 0
    runs = jobs * rounds
    gap = timedelta(days=days) / runs
    end = datetime.now(UTC)
    begin = end - gap * runs
    step = (gap * jobs).total_seconds()
    last = PARTITIONS + 2 * jobs + 3 * runs
    numbers = {"jobs": jobs, "rounds": rounds, "batch": batch, "first": PARTITIONS, "last": last}
    values = {"step": step} | {name: Int8(number) for name, number in numbers.items()}
    with database.session() as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET plan_cache_mode = auto")
        set_up = {"start": begin.isoformat(), "gap": f"{gap.total_seconds():.6f} s", "batch": batch}
        for name, value in set_up.items():
            connection.execute("SELECT set_config(%s, %s, false)", (f"bench.{name}", str(value)))
        connection.execute(_NAMED, prepare=False)
        connection.execute("CREATE TEMPORARY TABLE runs (number bigint, id uuid)")
        connection.execute(database.sql(_ELECTED))
        connection.execute(database.sql(_LED), values)
        connection.execute(database.sql(_JOB_EVENTS), values)
        connection.execute(database.sql(_JOBS), values)
        connection.execute(database.sql(_NEXT_RUNS), values)
        for low in range(0, runs, PIECE):
            piece = {**values, "low": Int8(low), "high": Int8(min(low + PIECE, runs))}
            _name_runs(connection, low, min(low + PIECE, runs), jobs, begin, gap)
            connection.execute(database.sql(_RUN_EVENTS), piece)
            connection.execute(database.sql(_EXECUTIONS), piece)
            watch(min(low + PIECE, runs))
        connection.execute(database.sql(_DEAD_LETTERS))
        connection.execute(database.sql("SELECT setval(:positions, %s)"), (last,))
        tables = ("job_events", "occurrence_events", *PROJECTIONS)
        for table in tables:
            connection.execute(database.sql(f"VACUUM ANALYZE :schema.{table}"))
    return Filled(jobs, runs, begin, end)


def _name_runs(
    connection: Connection, low: int, high: int, jobs: int, begin: datetime, gap: timedelta
) -> None:
    """The ids of the runs from ``low`` to below ``high``, which SQL cannot compute."""
    connection.execute("TRUNCATE pg_temp.runs")
    statement = "COPY pg_temp.runs (number, id) FROM STDIN (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int8", "uuid"])
        for number in range(low, high):
            identity = occurrence_id(_job(number % jobs), begin + number * gap)
            copy.write_row((number, identity))


@cache
def _job(number: int) -> UUID:
    """As ``pg_temp.job``."""
    digest = md5(f"job{number}".encode(), usedforsecurity=False).hexdigest()
    return UUID(f"{digest[:12]}8{digest[13:16]}8{digest[17:]}")
