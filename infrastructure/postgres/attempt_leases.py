"""The leases of running attempts, results of earlier runs, and counters: what a worker keeps here.

A heartbeat moves the row of a running occurrence in the next-run index and is no event: an attempt
that lives says nothing new. Only when it is not heard of does the log say something: Lost.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from horolog.application.privacy.ports import OpensSealed
from horolog.application.privacy.results import opened_result
from horolog.application.worker.heartbeats import Extended
from horolog.infrastructure.postgres.arrays import BigInts, Ints, Texts, Uuids
from horolog.infrastructure.postgres.database import Database

_EXTEND = "SELECT id, stopping FROM :schema.extend_attempts(%b, %b, %b)"

# executions_job, backwards, no further than so many finished occurrences; then the event's key.
_LAST_RESULT = """
    SELECT e.stream, e.state FROM (
        SELECT x.id, x.version, x.state FROM :schema.executions x
        WHERE x.job_id = %s AND x.id < %s ORDER BY x.id DESC LIMIT 100) recent
    JOIN :schema.occurrence_events e ON e.stream = recent.id AND e.version = recent.version
    WHERE recent.state = 'succeeded' ORDER BY recent.id DESC LIMIT 1
"""

# Locks the counters' rows in the order of their names.
_COUNT = """
    INSERT INTO :schema.counters AS c (name, value)
    SELECT n.name, n.value FROM unnest(%b, %b) AS n (name, value) ORDER BY n.name
    ON CONFLICT (name) DO UPDATE SET value = c.value + excluded.value
"""


class PostgresLeases:
    """As :class:`horolog.application.worker.heartbeats.ExtendsLeases` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._extend = database.sql(_EXTEND)

    def extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended:
        ids = Uuids([occurrence for occurrence, _ in attempts])
        numbers = Ints([number for _, number in attempts])
        rows = self._database.query(self._extend, (ids, numbers, float(lease_s)))
        return Extended(
            frozenset(row[0] for row in rows), frozenset(row[0] for row in rows if row[1])
        )


class PostgresResults:
    """As :class:`horolog.application.worker.lifeline.ReadsResults` promises."""

    def __init__(self, database: Database, keyring: OpensSealed) -> None:
        self._database = database
        self._keyring = keyring
        self._last = database.sql(_LAST_RESULT)

    def last_result(self, job_id: UUID, before: UUID) -> Any:
        rows = self._database.query(self._last, (job_id, before))
        if not rows:
            return None
        occurrence, state = rows[0]
        return opened_result(self._keyring, occurrence, json.loads(bytes(state)).get("result"))


class PostgresCounts:
    """As :class:`horolog.application.worker.counting.RecordsCounts` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._count = database.sql(_COUNT)

    def add(self, counts: Mapping[str, int]) -> None:
        names, values = Texts(list(counts.keys())), BigInts(list(counts.values()))
        self._database.query(self._count, (names, values))
