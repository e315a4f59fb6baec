"""What a window changes, written to the tables of the set: a fixed number of statements."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from horolog.infrastructure.postgres.arrays import (
    BigInts,
    Booleans,
    Instants,
    Ints,
    SmallInts,
    Texts,
    Uuids,
)
from horolog.infrastructure.postgres.database import Connection
from horolog.infrastructure.postgres.rebuild.sets import TableSet
from horolog.projections.changes import Changes, DatedJob, Led, Placed, Standing
from horolog.projections.rows import DeadLetter, Execution

_DROP = "DELETE FROM :other.{} t USING unnest(%b) AS w (id) WHERE t.id = w.id"

_NEXT_RUNS = """
    INSERT INTO :other.next_runs (due_at, fire_time, position, id, job_id, version, attempt,
                                  failures, fires, partition, look, state, kind)
    SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)
    ON CONFLICT (id) DO UPDATE SET
        due_at = excluded.due_at, fire_time = excluded.fire_time, position = excluded.position,
        job_id = excluded.job_id, version = excluded.version, attempt = excluded.attempt,
        failures = excluded.failures, fires = excluded.fires, partition = excluded.partition,
        look = excluded.look, state = excluded.state, kind = excluded.kind
"""
_JOBS = """
    INSERT INTO :other.jobs AS j (id, key, version, status, partition, name, queue, owner, labels,
                                  definition, held_fire, fires, registered_at, changed_at)
    SELECT n.id, n.key, n.version, n.status, n.partition, n.name, n.queue, n.owner,
           n.labels::jsonb, n.definition::json, n.held_fire, n.fires,
           coalesce(n.registered_at, n.changed_at), n.changed_at
    FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)
         AS n (id, key, version, status, partition, name, queue, owner, labels, definition,
               held_fire, fires, registered_at, changed_at)
    ON CONFLICT (id) DO UPDATE SET
        version = excluded.version, status = excluded.status, queue = excluded.queue,
        owner = excluded.owner, labels = excluded.labels, definition = excluded.definition,
        held_fire = excluded.held_fire, fires = excluded.fires, changed_at = excluded.changed_at
"""
_EXECUTIONS = """
    INSERT INTO :other.executions (finished_at, fire_time, id, job_id, version, attempt, failures,
                                   partition, state, kind)
    SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b)
    ON CONFLICT (id) DO UPDATE SET
        finished_at = excluded.finished_at, version = excluded.version,
        attempt = excluded.attempt, failures = excluded.failures, state = excluded.state
"""
_DEAD_LETTERS = """
    INSERT INTO :other.dead_letters (id, job_id, name, owner, cause, kind, error, attempt,
                                     fire_time, since)
    SELECT * FROM unnest(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b)
    ON CONFLICT (id) DO UPDATE SET
        cause = excluded.cause, kind = excluded.kind, error = excluded.error,
        attempt = excluded.attempt, since = excluded.since
"""
_PARTITIONS = """
    UPDATE :other.partitions p SET version = n.version, instance = n.instance,
           token = n.token::integer
    FROM unnest(%b, %b, %b, %b) AS n (partition, version, instance, token)
    WHERE p.partition = n.partition
"""


class Writing:
    """Writes to one set, within the caller's transaction."""

    def __init__(self, connection: Connection, tables: TableSet) -> None:
        self._connection = connection
        self._tables = tables

    def write(self, changes: Changes, *, with_executions: bool, with_partitions: bool) -> None:
        for statement, params in self._statements(changes, with_executions, with_partitions):
            self._connection.execute(self._tables.sql(statement), params)

    def _statements(
        self, changes: Changes, with_executions: bool, with_partitions: bool
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        index = {
            identity: place.placed() if isinstance(place, Standing) else place
            for identity, place in changes.index.items()
        }
        put = [placed for placed in index.values() if placed is not None]
        if len(put) < len(index):
            yield _DROP.format("next_runs"), _gone(index)
        if put:
            yield _NEXT_RUNS, _next_runs(put)
        if changes.jobs:
            yield _JOBS, _jobs(list(changes.jobs.values()))
        letters = [letter for letter in changes.dead_letters.values() if letter is not None]
        if len(letters) < len(changes.dead_letters):
            yield _DROP.format("dead_letters"), _gone(changes.dead_letters)
        if letters:
            yield _DEAD_LETTERS, _dead_letters(letters)
        if with_executions:
            yield from self._executions(changes)
        if with_partitions and changes.leaders:
            yield _PARTITIONS, _leaders(list(changes.leaders.values()))

    def _executions(self, changes: Changes) -> Iterator[tuple[str, Sequence[Any]]]:
        ended = [execution for execution in changes.executions.values() if execution is not None]
        if len(ended) < len(changes.executions):
            yield _DROP.format("executions"), _gone(changes.executions)
        if ended:
            yield _EXECUTIONS, _executions(ended)


def _gone(rows: Mapping[UUID, object]) -> list[Uuids]:
    return [Uuids([identity for identity, row in rows.items() if row is None])]


def _next_runs(placed: Sequence[Placed]) -> list[Any]:
    rows = [row for row, _, _ in placed]
    return [
        Instants([due_at for _, due_at, _ in placed]),
        Instants([row.fire_time for row in rows]),
        BigInts([position for _, _, position in placed]),
        Uuids([row.id for row in rows]),
        Uuids([row.job_id for row in rows]),
        Ints([row.version for row in rows]),
        Ints([row.attempt for row in rows]),
        Ints([row.failures for row in rows]),
        Ints([row.fires for row in rows]),
        SmallInts([row.partition for row in rows]),
        Booleans([row.look for row in rows]),
        Texts([row.state for row in rows]),
        Texts([row.kind for row in rows]),
    ]


def _jobs(jobs: Sequence[DatedJob]) -> list[Any]:
    rows = [job.row for job in jobs]
    return [
        Uuids([row.id for row in rows]),
        Texts([row.key for row in rows]),
        Ints([row.version for row in rows]),
        Texts([row.status for row in rows]),
        SmallInts([row.partition for row in rows]),
        Texts([row.name for row in rows]),
        Texts([row.queue for row in rows]),
        Texts([row.owner for row in rows]),
        Texts([json.dumps(row.labels) if row.labels else "{}" for row in rows]),
        Texts([row.definition for row in rows]),
        Instants([row.held_fire for row in rows]),
        Ints([row.fires for row in rows]),
        Instants([job.registered_at for job in jobs]),
        Instants([job.changed_at for job in jobs]),
    ]


def _executions(ended: Sequence[tuple[Execution, Any]]) -> list[Any]:
    rows = [row for row, _ in ended]
    return [
        Instants([finished_at for _, finished_at in ended]),
        Instants([row.fire_time for row in rows]),
        Uuids([row.id for row in rows]),
        Uuids([row.job_id for row in rows]),
        Ints([row.version for row in rows]),
        Ints([row.attempt for row in rows]),
        Ints([row.failures for row in rows]),
        SmallInts([row.partition for row in rows]),
        Texts([row.state for row in rows]),
        Texts([row.kind for row in rows]),
    ]


def _dead_letters(letters: Sequence[tuple[DeadLetter, Any]]) -> list[Any]:
    rows = [row for row, _ in letters]
    return [
        Uuids([row.id for row in rows]),
        Uuids([row.job_id for row in rows]),
        Texts([row.name for row in rows]),
        Texts([row.owner for row in rows]),
        Texts([row.cause for row in rows]),
        Texts([row.kind for row in rows]),
        Texts([row.error for row in rows]),
        Ints([row.attempt for row in rows]),
        Instants([row.fire_time for row in rows]),
        Instants([since for _, since in letters]),
    ]


def _leaders(leaders: Sequence[Led]) -> list[Any]:
    partitions = SmallInts([led.partition for led in leaders])
    versions = Ints([led.version for led in leaders])
    tokens = [None if led.token is None else str(led.token) for led in leaders]
    return [partitions, versions, Texts([led.instance for led in leaders]), Texts(tokens)]
