"""The log on Postgres: one call, one transaction, one round trip for a batch of decisions.

All of Python's work (packing the batch into arrays) is done before the log lock is taken, inside
the database function ``append`` (migrations/0003). If the connection breaks around the commit it is
unknown whether the batch was written. It is then sent again: what is already in the log is refused
by its guard, and a refused decision whose events stand in the log, byte for byte, was ours.
"""

import struct
from collections.abc import Sequence
from time import monotonic, sleep
from typing import Any
from uuid import UUID

import psycopg

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences, Recorded, Verdict
from horolog.domain.errors import OutOfRange, StoreUnavailable, VersionConflict
from horolog.domain.event import read_event
from horolog.infrastructure.postgres.arrays import Ints, Uuids
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.packing import ARGUMENTS, packed

_VERDICTS: dict[int, Verdict] = {0: "accepted", 1: "conflict", 2: "stale", 3: "full"}

REFUSED_AT_COMMIT = "HR001"
"""The SQLSTATE of a commit that the log refuses (migrations/0005)."""

_APPEND = "SELECT verdicts, last_position, recorded_at FROM :schema.append({})"

# Both tables' primary keys serve it; a stream is in one of them.
_STREAM = """
    SELECT position, recorded_at, stream, version, topic, state FROM :schema.job_events
    WHERE stream = %(stream)s AND version > %(after)s
    UNION ALL
    SELECT position, recorded_at, stream, version, topic, state FROM :schema.occurrence_events
    WHERE stream = %(stream)s AND version > %(after)s
    ORDER BY version LIMIT %(limit)s
"""

# The position indexes of both tables, merged; each branch stops after `limit` rows.
_LOG = """
    SELECT * FROM (
        (SELECT position, recorded_at, stream, version, topic, state FROM :schema.job_events
         WHERE position > %(after)s AND (%(topics)s::text[] IS NULL OR topic = ANY (%(topics)s))
         ORDER BY position LIMIT %(limit)s)
        UNION ALL
        (SELECT position, recorded_at, stream, version, topic, state FROM :schema.occurrence_events
         WHERE position > %(after)s AND (%(topics)s::text[] IS NULL OR topic = ANY (%(topics)s))
         ORDER BY position LIMIT %(limit)s)
    ) AS both_tables ORDER BY position LIMIT %(limit)s
"""

_STATES = """
    SELECT e.stream, e.version, e.topic, e.state
    FROM unnest(%b, %b) AS wanted (stream, version)
    JOIN {} e ON e.stream = wanted.stream AND e.version = wanted.version
"""


class PostgresLog:
    """Appends decisions and reads events back; shared by threads.

    ``news_horizon_s``: what an append makes due within so many seconds is told to the leaders by
    NOTIFY at once. ``patience_s``: how long an append whose connection broke is tried again before
    ``StoreUnavailable`` is raised.
    """

    def __init__(
        self, database: Database, *, news_horizon_s: float = 60.0, patience_s: float = 0.0
    ) -> None:
        self.database = database
        self._news_horizon_s = news_horizon_s
        self._patience_s = patience_s
        placeholders = ", ".join(["%b"] * ARGUMENTS)
        self._append = database.sql(_APPEND.format(placeholders))
        self._stream = database.sql(_STREAM)
        self._log = database.sql(_LOG)
        self._job_states = database.sql(_STATES.format(":schema.job_events"))
        self._occurrence_states = database.sql(_STATES.format(":schema.occurrence_events"))

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        """As :class:`horolog.application.log.AppendsToLog` promises."""
        batch = self._packed(decisions, fences)
        deadline = monotonic() + self._patience_s
        interrupted = False
        while True:
            try:
                verdicts, position, recorded_at = self.database.query(self._append, batch)[0]
                break
            except psycopg.errors.UniqueViolation as error:
                raise VersionConflict(
                    "another job has this key: read again and decide anew"
                ) from error
            except StoreUnavailable as error:
                if isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege):
                    raise  # no wait grants a right
                # The first repetition is free: most often one pooled connection was stale.
                if interrupted and monotonic() >= deadline:
                    raise
                if interrupted:
                    sleep(min(0.2, max(0.0, deadline - monotonic())))
                interrupted = True
        outcome: list[Verdict] = [_VERDICTS[verdict] for verdict in verdicts]
        if interrupted and any(verdict != "accepted" for verdict in outcome):
            outcome = self._recognised(decisions, outcome)
        return Appended(outcome, position, recorded_at)

    def arguments(self, decisions: Sequence[Decision]) -> list[Any]:
        """What ``append`` is called with, for another transaction (migrations/0005)."""
        return self._packed(decisions, None)

    def _packed(self, decisions: Sequence[Decision], fences: Fences | None) -> list[Any]:
        try:
            return packed(decisions, fences, self._news_horizon_s)
        except (OverflowError, struct.error) as error:
            raise OutOfRange(f"a decision cannot be kept: {error}") from error

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        params = {"stream": stream, "after": after, "limit": limit}
        return [recorded(row) for row in self.database.query(self._stream, params)]

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        params = {"after": after, "topics": list(topics) or None, "limit": limit}
        return [recorded(row) for row in self.database.query(self._log, params)]

    def _recognised(self, decisions: Sequence[Decision], verdicts: list[Verdict]) -> list[Verdict]:
        """The verdicts of a repeated batch, with what the first try had written as accepted."""
        refused = [d for d, v in zip(decisions, verdicts, strict=True) if v != "accepted"]
        wanted = [event for decision in refused for event in decision.events]
        keys = (Uuids([e.stream for e in wanted]), Ints([e.version for e in wanted]))
        stored: dict[tuple[UUID, int], tuple[str, bytes]] = {
            (stream, version): (topic, bytes(state))
            for statement in (self._job_states, self._occurrence_states)
            for stream, version, topic, state in self.database.query(statement, keys)
        }

        def ours(decision: Decision) -> bool:
            return bool(decision.events) and all(
                stored.get((e.stream, e.version)) == (e.event.topic, e.state())
                for e in decision.events
            )

        return [
            "accepted" if verdict != "accepted" and ours(decision) else verdict
            for decision, verdict in zip(decisions, verdicts, strict=True)
        ]


def recorded(row: Row) -> Recorded:
    """An event from its row in either table."""
    position, recorded_at, stream, version, topic, state = row
    where = f"at position {position} ({stream}:{version})"
    event = read_event(topic, bytes(state), where=where)
    return Recorded(position, recorded_at, stream, version, event)
