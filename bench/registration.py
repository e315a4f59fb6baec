"""What it costs to hand over a job: one at a time, and many at once, beside the raw rows."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from uuid import UUID

import psycopg

from horolog import Cron, Every, JobSpec, Once, Scheduler
from horolog.infrastructure.postgres.arrays import Bytes, Instants, Ints, Texts, Uuids

_TABLES = """
    DROP SCHEMA IF EXISTS bench_rows CASCADE;
    CREATE SCHEMA bench_rows;
    CREATE TABLE bench_rows.events (
        position bigserial, recorded_at timestamptz NOT NULL DEFAULT now(), stream uuid NOT NULL,
        version integer NOT NULL, topic text NOT NULL, state bytea NOT NULL,
        PRIMARY KEY (stream, version));
    CREATE UNIQUE INDEX ON bench_rows.events (position);
    CREATE TABLE bench_rows.jobs (
        id uuid PRIMARY KEY, name text NOT NULL, definition text NOT NULL);
    CREATE TABLE bench_rows.next_runs (
        id uuid PRIMARY KEY, due_at timestamptz NOT NULL, version integer NOT NULL);
    CREATE INDEX ON bench_rows.next_runs (due_at, id);
"""
_EVENTS = """
    INSERT INTO bench_rows.events (stream, version, topic, state)
    SELECT * FROM unnest(%b, %b, %b, %b)
"""
_JOBS = "INSERT INTO bench_rows.jobs SELECT * FROM unnest(%b, %b, %b)"
_INDEX = "INSERT INTO bench_rows.next_runs SELECT * FROM unnest(%b, %b, %b)"


def specs(count: int) -> Iterator[JobSpec]:
    """A third each of one-offs, intervals and cron jobs, far from being due."""
    later = datetime.now(UTC) + timedelta(days=30)
    for number in range(count):
        payload = {"card": f"cards/{number}", "amount": number}
        match number % 3:
            case 0:
                at = later + timedelta(seconds=number)
                yield JobSpec("invoices.bill", schedule=Once(at), payload=payload)
            case 1:
                yield JobSpec("feeds.poll", schedule=Every(3600 + number % 7), payload=payload)
            case _:
                night = Cron(f"{number % 60} 2 * * *", zone="America/New_York")
                yield JobSpec("reports.nightly", schedule=night, payload=payload)


def many_per_second(scheduler: Scheduler, jobs: int) -> float:
    """Jobs a second through ``register_many`` in batches of 1,000."""
    began = perf_counter()
    registered = sum(1 for _ in scheduler.register_many(specs(jobs)))
    assert registered == jobs
    return jobs / (perf_counter() - began)


def one_by_one_per_second(scheduler: Scheduler, jobs: int) -> float:
    """Jobs a second through ``register``, each in a commit of its own."""
    later = Once(datetime.now(UTC) + timedelta(days=30))
    began = perf_counter()
    for number in range(jobs):
        scheduler.register("invoices.bill", schedule=later, payload={"amount": number})
    return jobs / (perf_counter() - began)


def raw_rows_per_second(database_url: str, jobs: int, batch: int) -> float:
    """The rows of so many jobs (event, definition, index) written by binary ``unnest``.

    With ``batch=1`` each is a commit of its own.
    """
    now = datetime.now(UTC)
    definition = json.dumps({"name": "invoices.bill", "schedule": {"kind": "once"}, "payload": {}})
    state = definition.encode() + b" " * 120
    with psycopg.connect(database_url, autocommit=True, prepare_threshold=0) as connection:
        connection.execute(_TABLES, prepare=False)
        began = perf_counter()
        for start in range(0, jobs, batch):
            ids = sorted(UUID(bytes=os.urandom(16)) for _ in range(min(batch, jobs - start)))
            n = len(ids)
            topics = Texts(["job.registered.1"] * n)
            with connection.transaction():
                packed = (Uuids(ids), Ints([1] * n), topics, Bytes([state] * n))
                connection.execute(_EVENTS, packed)
                connection.execute(_JOBS, (Uuids(ids), topics, Texts([definition] * n)))
                connection.execute(_INDEX, (Uuids(ids), Instants([now] * n), Ints([1] * n)))
        seconds = perf_counter() - began
        connection.execute("DROP SCHEMA bench_rows CASCADE")
    return jobs / seconds
