"""The table of the subjects' keys, wrapped; and wrapping them anew with another master key."""

from collections.abc import Collection, Iterator
from uuid import UUID

from psycopg import sql

from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.privacy.keyring import SubjectKey
from horolog.infrastructure.privacy.master_keys import Wrapped

# The primary key, and the unique index of the ids. No locks.
_BY_SUBJECT = "SELECT subject, id, wrapped, master FROM :schema.subject_keys WHERE subject = %s"
_BY_ID = "SELECT subject, id, wrapped, master FROM :schema.subject_keys WHERE id = %s"
_ERASED = "SELECT id FROM :schema.subject_keys WHERE id = ANY (%s) AND forgotten_at IS NOT NULL"
_PAGE = """
    SELECT subject, id, wrapped, master FROM :schema.subject_keys
    WHERE subject > %s AND wrapped IS NOT NULL AND master <> %s ORDER BY subject LIMIT %s
"""
# One row; only what it was a moment ago, so a subject that is forgotten meanwhile stays forgotten.
_REWRAP = """
    UPDATE :schema.subject_keys SET wrapped = %s, master = %s
    WHERE id = %s AND wrapped = %s RETURNING 1
"""
_COUNTS = """
    SELECT master, count(*) FROM :schema.subject_keys GROUP BY master ORDER BY master NULLS LAST
"""
# Whoever has an event that says so and a key all the same: a table that was restored alone.
_HALF_FORGOTTEN = """
    SELECT k.subject FROM :schema.job_events e
    JOIN :schema.subject_keys k ON k.subject = :schema.decoded(e.state) ->> 'subject'
    WHERE e.topic = 'subject.forgotten.1' AND k.wrapped IS NOT NULL ORDER BY 1
"""
_DESTROY = """
    UPDATE :schema.subject_keys
    SET wrapped = NULL, master = NULL, forgotten_at = clock_timestamp()
    WHERE subject = ANY (%s) AND wrapped IS NOT NULL RETURNING id::text
"""
_TELL = "SELECT pg_notify(:literal || '_forgotten', %s)"
_PAGE_SIZE = 500


class PostgresSubjectKeys:
    """As :class:`horolog.infrastructure.privacy.keyring.KeepsSubjectKeys` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_subject(self, subject: str) -> SubjectKey | None:
        rows = self._query(_BY_SUBJECT, (subject,))
        return _key(rows[0]) if rows else None

    def of_id(self, key: UUID) -> SubjectKey | None:
        rows = self._query(_BY_ID, (key,))
        return _key(rows[0]) if rows else None

    def make(self, key: SubjectKey) -> SubjectKey:
        assert key.wrapped is not None
        params = (key.subject, key.id, key.wrapped.data, key.wrapped.master)
        made = "SELECT id, wrapped, master FROM :schema.subject_key(%s, %s, %s, %s)"
        ((identity, wrapped, master),) = self._query(made, params)
        return _key((key.subject, identity, wrapped, master))

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        return frozenset(row[0] for row in self._query(_ERASED, (list(keys),)))

    # For whoever owns the schema.

    def wrapped_with_others(self, master: str) -> Iterator[list[SubjectKey]]:
        """Pages of the keys that are not wrapped with this master key."""
        last = ""
        while page := self._query(_PAGE, (last, master, _PAGE_SIZE)):
            yield [_key(row) for row in page]
            last = page[-1][0]

    def rewrap(self, before: SubjectKey, wrapped: Wrapped) -> bool:
        """Whether it was still as it was ``before``, and is now wrapped so."""
        assert before.wrapped is not None
        params = (wrapped.data, wrapped.master, before.id, before.wrapped.data)
        return bool(self._query(_REWRAP, params))

    def counts(self) -> dict[str | None, int]:
        """How many keys each master key wraps; ``None`` for the forgotten subjects."""
        return dict(self._query(_COUNTS, None))

    def destroy_half_forgotten(self) -> int:
        """Destroys the keys of subjects whose being forgotten is in the log; how many these were.

        There are none, unless the table was restored from a time before the log's.
        """
        subjects = [row[0] for row in self._query(_HALF_FORGOTTEN, None)]
        lost = [row[0] for row in self._query(_DESTROY, (subjects,))] if subjects else []
        for key in lost:
            self._query(_TELL, (key,))
        return len(lost)

    def _query(self, text: str, params: object) -> list[Row]:
        return self._database.query(self._sql(text), params)

    def _sql(self, text: str) -> sql.Composed:
        return self._database.sql(text)


def _key(row: Row) -> SubjectKey:
    subject, identity, wrapped, master = row
    kept = None if wrapped is None else Wrapped(master, bytes(wrapped))
    return SubjectKey(subject, identity, kept)
