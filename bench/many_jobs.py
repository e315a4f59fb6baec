"""Many registered jobs without having registered them: one run each, at times of one's choice.

Written by SQL with the rows of the read models beside the events, as ``register_many`` would have
left them, some fifty times as fast. Their times are not in the order of their registration, so that
what is due together does not lie together on the disk. May be called several times, also where jobs
are already; no process of Horolog may run meanwhile.
"""

from collections.abc import Sequence
from datetime import datetime

from psycopg.types.numeric import Int8

from horolog.infrastructure.postgres.database import Database

PIECE = 200_000

_NAMED = """
    CREATE OR REPLACE FUNCTION pg_temp.said(moment timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') $$;
    CREATE TEMP TABLE wanted (
        position bigint, id uuid, partition smallint, due timestamptz, definition text
    )
"""
# Golden steps: the times of neighbours lie far apart, and all together they are even.
_WANTED = """
    INSERT INTO pg_temp.wanted
    SELECT %(base)s + n,
           (lpad(to_hex(floor(extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '8'
            || substr(h.hex, 1, 3) || '8' || substr(h.hex, 4, 15))::uuid,
           (%(partitions)s::smallint[])[1 + n %% cardinality(%(partitions)s::smallint[])],
           d.due,
           '{"name":"' || %(name)s || '","schedule":{"kind":"once","at":"' || pg_temp.said(d.due)
               || '"}}'
    FROM generate_series(%(low)s, %(high)s) n
    CROSS JOIN LATERAL (SELECT md5(%(base)s || '/' || n) AS hex) h
    CROSS JOIN LATERAL (
        SELECT %(begin)s + make_interval(secs => %(spread_s)s * mod(n * 0.6180339887498949, 1))
               AS due) d
"""
_EVENTS = """
    INSERT INTO :schema.job_events (position, recorded_at, stream, version, topic, state)
    SELECT position, now(), id, 1, 'job.registered.1',
           convert_to('{"actor":"bench","definition":' || definition || ',"partition":' || partition
                      || ',"next_fire":"' || pg_temp.said(due) || '","tzdata":"2026f"}', 'UTF8')
    FROM pg_temp.wanted ORDER BY id
"""
_JOBS = """
    INSERT INTO :schema.jobs (id, key, version, status, partition, name, queue, owner, labels,
                              definition, held_fire, fires, registered_at, changed_at)
    SELECT id, NULL, 1, 'active', partition, %(name)s, 'default', NULL, '{}', definition::json,
           NULL, 0, now(), now()
    FROM pg_temp.wanted ORDER BY id
"""
_NEXT_RUNS = """
    INSERT INTO :schema.next_runs (due_at, fire_time, position, id, job_id, version, attempt,
                                   failures, fires, partition, look, state, kind)
    SELECT due, due, position, id, id, 1, 0, 0, 0, partition, false, 'active', 'job'
    FROM pg_temp.wanted ORDER BY id
"""
_MADE_AFTERWARDS = """
    SELECT indexname, indexdef FROM pg_indexes
    WHERE schemaname = %s AND indexname IN ('next_runs_fires', 'jobs_name')
"""


def fill_jobs(
    database: Database,
    count: int,
    *,
    begin: datetime,
    spread_s: float,
    name: str = "ping",
    partitions: Sequence[int] = range(64),
) -> None:
    """``count`` jobs of the handler ``name`` in a migrated namespace, due evenly over ``spread_s``
    seconds from ``begin`` on, in the given partitions in turn."""
    with database.session() as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET plan_cache_mode = auto")
        connection.execute(_NAMED, prepare=False)
        row = connection.execute(
            database.sql(
                "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM :schema.positions"
            )
        ).fetchone()
        assert row is not None
        values = {
            "base": Int8(row[0]),
            "name": name,
            "begin": begin,
            "spread_s": spread_s,
            "partitions": list(partitions),
        }
        indexes = connection.execute(_MADE_AFTERWARDS, (database.namespace,)).fetchall()
        for index, _ in indexes:
            connection.execute(database.sql(f"DROP INDEX :schema.{index}"))
        for low in range(1, count + 1, PIECE):
            piece = {"low": Int8(low), "high": Int8(min(low + PIECE - 1, count))}
            with connection.transaction():
                connection.execute(_WANTED, values | piece)
                connection.execute(database.sql(_EVENTS))
                connection.execute(database.sql(_JOBS), values)
                connection.execute(database.sql(_NEXT_RUNS))
                connection.execute("TRUNCATE pg_temp.wanted")
        for _, definition in indexes:
            connection.execute(definition, prepare=False)
        connection.execute(database.sql("SELECT setval(:positions, %s)"), (row[0] + count,))
        for table in ("job_events", "jobs", "next_runs"):
            connection.execute(database.sql(f"VACUUM ANALYZE :schema.{table}"))
        connection.execute("CHECKPOINT")
