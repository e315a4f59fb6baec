"""Scanning the stored log and one snapshot of the index, for ``horolog verify``.

The scan is paged by position, outside of any transaction; only the comparison with the index needs
a snapshot, and holds it for as long as reading the index takes: an old snapshot keeps dead rows of
a busy index from being cleaned up.
"""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from pydantic_core import from_json

from horolog.application.verify.ports import IndexedRow, LoggedJob, ScannedEvent
from horolog.application.verify.share import WHOLE, Share
from horolog.domain.log_events import OccurrencesPruned
from horolog.domain.retry import Retry
from horolog.infrastructure.postgres.arrays import Bytes, Uuids
from horolog.infrastructure.postgres.database import Connection, Database, Row
from horolog.infrastructure.postgres.rebuild.rebuilds import said_of_log
from horolog.projections.pruned import Pruned

_COLUMNS = "position, recorded_at, stream, version, topic, state"
_SCANNED = "position, recorded_at, uuid_send(stream), version, topic, state"

# The position indexes of both tables, merged; each branch stops after `limit` rows.
_PAGE = f"""
    SELECT {_SCANNED} FROM (
        (SELECT {_COLUMNS} FROM :schema.job_events
         WHERE position > %(after)s {{of_jobs}} ORDER BY position LIMIT %(limit)s)
        UNION ALL
        (SELECT {_COLUMNS} FROM :schema.occurrence_events
         WHERE position > %(after)s {{of_occurrences}} ORDER BY position LIMIT %(limit)s)
    ) AS both_tables ORDER BY position LIMIT %(limit)s
"""
# What a share reads of the streams that are not its own. Of jobs: all but the most frequent ones of
# those that only the owner looks at. Of occurrences: the first event, which moves a job on, unless
# it names another share's job (its name ends as one of `others`) in the form that is written.
_OWN = "(get_byte(uuid_send(stream), 15) & 15) %% {of} = {number}"
_OF_JOBS = f"""
    AND ({_OWN} OR topic NOT IN ('job.registered.1', 'job.fires_skipped.1', 'job.completed.1'))
"""
_OF_OCCURRENCES = f"""
    AND ({_OWN} OR (version = 1 AND
         (substring(state FROM nullif(position('"job_id":"'::bytea IN state), 0) + 45 FOR 2)
          = ANY (%(others)b)) IS NOT TRUE))
"""
# The position indexes of both tables, alone where the pages are all visible.
_DOUBLES = f"""
    WITH doubles AS MATERIALIZED (
        SELECT position FROM (
            SELECT position FROM :schema.job_events
            WHERE position > %(after)s AND position <= %(until)s
            UNION ALL
            SELECT position FROM :schema.occurrence_events
            WHERE position > %(after)s AND position <= %(until)s
        ) AS both_tables GROUP BY position HAVING count(*) > 1 ORDER BY position LIMIT 1000
    )
    SELECT e.* FROM doubles d CROSS JOIN LATERAL (
        SELECT {_SCANNED} FROM (
            SELECT {_COLUMNS} FROM :schema.job_events j WHERE j.position = d.position
            UNION ALL
            SELECT {_COLUMNS} FROM :schema.occurrence_events o WHERE o.position = d.position
        ) AS both_tables OFFSET 1
    ) AS e ORDER BY e.position
"""
# The primary key of the month's events.
_BEFORE = f"""
    SELECT {_SCANNED} FROM :schema.occurrence_events
    WHERE stream = %s AND position < %s ORDER BY version
"""
# The primary key of job_events.
_POLICIES = """
    SELECT e.stream, e.topic, e.state FROM unnest(%b) AS w (stream)
    JOIN :schema.job_events e ON e.stream = w.stream
    WHERE e.topic IN ('job.registered.1', 'job.policies_changed.1')
"""
# The primary key of job_events.
_SCHEDULES = """
    SELECT e.version, e.topic, e.state FROM :schema.job_events e
    WHERE e.stream = %s AND e.topic IN ('job.registered.1', 'job.rescheduled.1')
    ORDER BY e.version
"""
_STARTED = """
    SELECT w.id FROM unnest(%b) AS w (id)
    WHERE EXISTS (SELECT FROM :schema.occurrence_events e WHERE e.stream = w.id)
"""
# One pass along the primary key of job_events, no sort: a stream's last event that decides on the
# status, and its size.
_JOBS = """
    SELECT stream, max(version), count(*),
           (array_agg(topic ORDER BY version DESC) FILTER (WHERE topic IN (
               'job.registered.1', 'job.paused.1', 'job.resumed.1', 'job.cancelled.1',
               'job.completed.1')))[1],
           (array_agg(version ORDER BY version DESC) FILTER (WHERE topic = 'job.completed.1'))[1]
             < max(version) FILTER (WHERE topic = 'job.rescheduled.1')
    FROM :schema.job_events WHERE topic LIKE 'job.%%'
    GROUP BY stream ORDER BY stream
"""
_INDEX = """
    SELECT id, job_id, kind, state, version, attempt, fire_time, due_at
    FROM :schema.next_runs WHERE {}
"""


class PostgresLogScan:
    """As :class:`horolog.application.verify.ports.ScansLog` promises."""

    def __init__(self, database: Database, share: Share = WHOLE) -> None:
        self._database = database
        self._others = Bytes(_ends_of_others(share))
        self._page = database.sql(_page_of(share))
        self._doubles = database.sql(_DOUBLES)
        self._thread = ThreadPoolExecutor(1, "verify-reads")
        self._ahead: tuple[int, int, Future[list[Row]]] | None = None
        self._before = database.sql(_BEFORE)
        self._policies = database.sql(_POLICIES)
        self._schedules = database.sql(_SCHEDULES)

    def page(self, after: int, limit: int) -> list[ScannedEvent]:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (after, limit):
            rows = ahead[2].result()
        else:
            rows = self._read(after, limit)
        if len(rows) == limit:
            # On its way while this one is looked at. Positions become visible in their order.
            last: int = rows[-1][0]
            self._ahead = (last, limit, self._thread.submit(self._read, last, limit))
        return [ScannedEvent._make(row) for row in rows]

    def _read(self, after: int, limit: int) -> list[Row]:
        return self._database.query(
            self._page, {"after": after, "limit": limit, "others": self._others}
        )

    def doubles(self, after: int, until: int) -> list[ScannedEvent]:
        rows = self._database.query(self._doubles, {"after": after, "until": until})
        return [ScannedEvent._make(row) for row in rows]

    def before(self, stream: bytes, position: int) -> list[ScannedEvent]:
        rows = self._database.query(self._before, (UUID(bytes=stream), position))
        return [ScannedEvent._make(row) for row in rows]

    def allowed_attempts(self, jobs: Sequence[bytes]) -> dict[bytes, int]:
        allowed: dict[bytes, int] = {}
        asked = Uuids([UUID(bytes=job) for job in jobs])
        for stream, topic, state in self._database.query(self._policies, (asked,)):
            job = stream.bytes
            stated = from_json(state)
            key = "definition" if topic == "job.registered.1" else "changes"
            retry = stated.get(key, {}).get("retry", {})
            most = retry.get("max_attempts", Retry().max_attempts)
            if key == "definition" or retry:
                allowed[job] = max(most, allowed.get(job, 0))
        return allowed

    def schedules(self, job: bytes) -> list[tuple[int, dict[str, Any]]]:
        return [
            (version, schedule_of(topic, bytes(state)))
            for version, topic, state in self._database.query(self._schedules, (UUID(bytes=job),))
        ]

    def pruned(self) -> Pruned:
        said = said_of_log(self._database)
        return Pruned((at, event) for at, event in said if isinstance(event, OccurrencesPruned))

    @contextmanager
    def snapshot(self) -> Generator["PostgresSnapshot"]:
        with self._database.session() as connection, self._database.translated():
            connection.execute("SET idle_in_transaction_session_timeout = 0")
            connection.execute("SET statement_timeout = 0")
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresSnapshot(self._database, connection)
            connection.execute("ROLLBACK")


def schedule_of(topic: str, state: bytes) -> dict[str, Any]:
    """The schedule in the state of an event that brought one."""
    stated = from_json(state)
    return stated["definition"]["schedule"] if topic == "job.registered.1" else stated["schedule"]


def _page_of(share: Share) -> str:
    if share.of == 1:
        return _PAGE.format(of_jobs="", of_occurrences="")
    of_jobs, of_occurrences = (
        part.format(of=share.of, number=share.number) for part in (_OF_JOBS, _OF_OCCURRENCES)
    )
    return _PAGE.format(of_jobs=of_jobs, of_occurrences=of_occurrences)


def _ends_of_others(share: Share) -> list[bytes]:
    """How the name of a job ends in the state of an event, if the job is of another share."""
    return [b'%x"' % digit for digit in range(16) if digit % share.of != share.number]


class PostgresSnapshot:
    """As :class:`horolog.application.verify.ports.Snapshot` promises."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database = database
        self._connection = connection
        # The sequence itself is not part of a snapshot; the events are.
        last = connection.execute(
            database.sql(
                "SELECT greatest((SELECT max(position) FROM :schema.job_events),"
                " (SELECT max(position) FROM :schema.occurrence_events), 0)"
            )
        ).fetchone()
        assert last is not None
        self.position: int = last[0]

    def jobs(self) -> Iterator[LoggedJob]:
        for stream, version, events, topic, revived in self._rows("jobs", _JOBS):
            active = topic in ("job.registered.1", "job.resumed.1") or (
                topic == "job.completed.1" and bool(revived)
            )
            yield LoggedJob(stream, version, events, active)

    def indexed_jobs(self) -> Iterator[IndexedRow]:
        text = _INDEX.format("kind = 'job' ORDER BY id")
        return (IndexedRow(*row) for row in self._rows("indexed_jobs", text))

    def indexed_occurrences(self) -> Iterator[IndexedRow]:
        text = _INDEX.format("kind <> 'job'")
        return (IndexedRow(*row) for row in self._rows("occurrences", text))

    def started(self, occurrences: Sequence[UUID]) -> set[UUID]:
        if not occurrences:
            return set()
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(self._database.sql(_STARTED), (Uuids(occurrences),))
            return {identity for (identity,) in cursor}

    def _rows(self, name: str, text: str) -> Iterator[tuple[Any, ...]]:
        with psycopg.ServerCursor(self._connection, name) as cursor:
            cursor.itersize = 5_000
            cursor.execute(self._database.sql(text), binary=True)
            yield from cursor
