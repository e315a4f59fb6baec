"""The limit: the same rows written by binary ``unnest`` with nothing else running.

Three event rows and one index row for each occurrence, in batches of 1,000, on the same server with
the same durability: what a scheduler with this history could reach if it did nothing else.
"""

import os
from datetime import UTC, datetime
from time import perf_counter
from uuid import UUID

import psycopg

from horolog.infrastructure.postgres.arrays import Bytes, Instants, Ints, Texts, Uuids

_TABLES = """
    DROP SCHEMA IF EXISTS bench_limit CASCADE;
    CREATE SCHEMA bench_limit;
    CREATE TABLE bench_limit.events (
        position bigserial, recorded_at timestamptz NOT NULL DEFAULT now(), stream uuid NOT NULL,
        version integer NOT NULL, topic text NOT NULL, state bytea NOT NULL,
        PRIMARY KEY (stream, version));
    CREATE UNIQUE INDEX ON bench_limit.events (position);
    CREATE TABLE bench_limit.next_runs (
        id uuid PRIMARY KEY, due_at timestamptz NOT NULL, version integer NOT NULL);
    CREATE INDEX ON bench_limit.next_runs (due_at, id);
"""
_EVENTS = """
    INSERT INTO bench_limit.events (stream, version, topic, state)
    SELECT * FROM unnest(%b, %b, %b, %b)
"""
_INDEX = "INSERT INTO bench_limit.next_runs (id, due_at, version) SELECT * FROM unnest(%b, %b, %b)"

STATES = [
    (
        "occurrence.claimed.1",
        (
            b'{"actor":"scanner@host:1234:0a1b2c3d","job_id":"01a22c85-1da9-839c-b479-2936defcdc6a",'
            b'"job_version":1,"fire_time":"2027-01-01T00:00:00Z","attempt":1,"partition":17,"token":1,'
            b'"window":30.0,"fires":1}'
        ),
    ),
    (
        "occurrence.attempted.1",
        b'{"actor":"worker@host:1234:0a1b2c3d","attempt":1,"lease":30.0}',
    ),
    (
        "occurrence.succeeded.1",
        b'{"actor":"worker@host:1234:0a1b2c3d","attempt":1,"seconds":0.0012}',
    ),
]


def occurrences_per_second(database_url: str, occurrences: int, batch: int = 1_000) -> float:
    """How many occurrences a second the server takes when only these rows are written."""
    now = datetime.now(UTC)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(_TABLES, prepare=False)
        began = perf_counter()
        for start in range(0, occurrences, batch):
            ids = sorted(UUID(bytes=os.urandom(16)) for _ in range(min(batch, occurrences - start)))
            for version, (topic, state) in enumerate(STATES, 1):
                n = len(ids)
                packed = (Uuids(ids), Ints([version] * n), Texts([topic] * n), Bytes([state] * n))
                with connection.transaction():
                    connection.execute(_EVENTS, packed)
                    if version == 1:
                        index = (Uuids(ids), Instants([now] * n), Ints([1] * n))
                        connection.execute(_INDEX, index)
        seconds = perf_counter() - began
        connection.execute("DROP SCHEMA bench_limit CASCADE")
    return occurrences / seconds
