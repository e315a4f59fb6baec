"""The inbox on Postgres: rows are taken by the transaction that appends what they say.

The append is put down and made by the server when the COMMIT arrives (migrations/0005), so the log
lock is not held while the row is being taken away.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg

from horolog.application.decision import Decision
from horolog.application.inbox.draining import Row, RowGone
from horolog.application.log import Appended, Fences, Verdict
from horolog.domain.errors import VersionConflict
from horolog.infrastructure.postgres.arrays import SmallInts
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import REFUSED_AT_COMMIT, PostgresLog
from horolog.infrastructure.postgres.packing import ARGUMENTS

# inbox_waiting and inbox_job.
_WAITING = """
    SELECT i.id, i.job_id, i.document::text FROM :schema.inbox i
    WHERE i.partition = ANY (%b) AND i.refused_at IS NULL ORDER BY i.id LIMIT %s
"""
_OF_JOB = """
    SELECT i.id, i.job_id, i.document::text FROM :schema.inbox i
    WHERE i.job_id = %s AND i.refused_at IS NULL ORDER BY i.id LIMIT %s
"""
_TAKE = "DELETE FROM :schema.inbox i WHERE i.id = ANY (%s) AND i.refused_at IS NULL"
_REFUSE = """
    WITH refused AS (
        UPDATE :schema.inbox i SET refused_at = clock_timestamp(), error = %s
        WHERE i.id = %s AND i.refused_at IS NULL RETURNING i.id
    )
    INSERT INTO :schema.counters AS c (name, value)
    SELECT 'inbox_refused', count(*) FROM refused HAVING count(*) > 0
    ON CONFLICT (name) DO UPDATE SET value = c.value + excluded.value
"""
MAX_ERROR = 4_000
_LISTED = """
    SELECT i.id, i.job_id, i.document ->> 'command', i.document ->> 'actor', i.asked_at,
           i.refused_at, i.error
    FROM :schema.inbox i WHERE i.refused_at IS NOT NULL OR NOT %s ORDER BY i.id LIMIT %s
"""
_RETRY = "SELECT :schema.inbox_retry(%s)"
_DISCARD = "SELECT :schema.inbox_discard(%s)"


class PostgresInbox:
    """As :class:`horolog.application.inbox.draining.Inbox` promises; shared by threads."""

    def __init__(self, database: Database, log: PostgresLog) -> None:
        self._database = database
        self._log = log
        self._clock = PostgresClock(database)
        self._waiting = database.sql(_WAITING)
        self._of_job = database.sql(_OF_JOB)
        self._take = database.sql(_TAKE)
        self._refuse = database.sql(_REFUSE)

    def waiting(self, partitions: Sequence[int], limit: int) -> list[Row]:
        params = (SmallInts(list(partitions)), limit)
        return _rows(self._database.query(self._waiting, params))

    def of_job(self, job_id: UUID, limit: int) -> list[Row]:
        return _rows(self._database.query(self._of_job, (job_id, limit)))

    def taking(self, ids: Sequence[int]) -> "TakingLog":
        return TakingLog(self._database, self._log, self._clock, ids)

    def settle(self, row: int, error: str | None) -> None:
        if error is None:
            self._database.query(self._take, ([row],))
        else:
            shown = error.encode("utf-8", "replace").decode().replace("\0", "")[:MAX_ERROR]
            self._database.query(self._refuse, (shown, row))


def _rows(found: Sequence[tuple[int, UUID, str]]) -> list[Row]:
    return [Row(number, job_id, _document(text)) for number, job_id, text in found]


def _document(text: str) -> object:
    """What the text says; as it stands where Python cannot read what Postgres took for JSON (it is
    nested too deeply): then it is no command, and set aside alone."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class TakingLog:
    """As :class:`horolog.application.inbox.draining.Taking` promises; for one thread.

    Where the connection breaks at the commit it is unknown whether the rows were taken: whoever
    drains next finds them, or does not. The position of what was appended is not known here: 0.
    """

    def __init__(
        self, database: Database, log: PostgresLog, clock: PostgresClock, ids: Sequence[int]
    ) -> None:
        self.taken = False
        self._database = database
        self._log = log
        self._clock = clock
        self._ids = list(ids)
        values = ", ".join(["%b"] * ARGUMENTS)
        self._put_down = database.sql(f"INSERT INTO :schema.at_commit VALUES ({values})")
        self._take = database.sql(_TAKE)

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        if self.taken:
            return self._log.append(decisions, fences)
        arguments = self._log.arguments(decisions)
        try:
            with self._database.connection() as connection, connection.transaction():
                if connection.execute(self._take, (self._ids,)).rowcount != len(self._ids):
                    raise RowGone
                connection.execute(self._put_down, arguments)
        except psycopg.errors.UniqueViolation as error:
            raise VersionConflict("another job has this key: read again and decide anew") from error
        except psycopg.Error as error:
            if error.sqlstate != REFUSED_AT_COMMIT:
                raise
            return self._answer("conflict", len(decisions))
        self.taken = True
        return self._answer("accepted", len(decisions))

    def _answer(self, verdict: Verdict, decisions: int) -> Appended:
        # The position is the server's secret: it was drawn at the commit, after the last answer.
        return Appended([verdict] * decisions, 0, self._clock.now())


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """A row of the inbox as people see it."""

    id: int
    job_id: UUID
    command: str | None
    actor: str | None
    given_at: datetime
    refused_at: datetime | None
    error: str | None


class PostgresInboxList:
    """What lies in the inbox, and what a person decides on what was set aside."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listed(self, *, refused: bool, limit: int) -> list[ListedCommand]:
        rows = self._database.query(self._database.sql(_LISTED), (refused, limit))
        return [ListedCommand(*row) for row in rows]

    def retry(self, row: int) -> bool:
        """Whether it was set aside; then it waits again. ``VersionConflict`` where another
        registration of its key waits."""
        try:
            return bool(self._database.query(self._database.sql(_RETRY), (row,))[0][0])
        except psycopg.errors.UniqueViolation as error:
            raise VersionConflict(
                f"command {row} registers a key for which another registration waits: try again"
            ) from error

    def discard(self, row: int) -> bool:
        """Whether it was set aside; it is gone then."""
        return bool(self._database.query(self._database.sql(_DISCARD), (row,))[0][0])
