"""The library's process recorder on our tables.

It derives from the library's abstract classes and not from its ``PostgresProcessRecorder``: that
is made of tables and a pool of its own, a table lock and repeated inserts, and nothing of it would
be left. What the library calls a notification id is the position in our log.
"""

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
)

from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.log import Fences
from horolog.domain.event import read_event
from horolog.domain.partition import Elected, PartitionState, Released
from horolog.infrastructure.eventsourcing.failures import library_errors
from horolog.infrastructure.eventsourcing.folding import folded
from horolog.infrastructure.eventsourcing.once import written_once
from horolog.infrastructure.eventsourcing.subscription import PostgresLogSubscription
from horolog.infrastructure.eventsourcing.tracking import PostgresLogTracking, retried
from horolog.infrastructure.postgres.arrays import Ints, Uuids
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.packing import ARGUMENTS, EventRow, in_occurrences, packed
from horolog.infrastructure.postgres.states import PostgresStates

# One statement, so one transaction and one round trip: all of it or, by an exception, none. The
# follower is moved first, so that whoever holds its row is waited for before the log lock is taken.
_INSERT = """
    SELECT :schema.all_accepted((done).verdicts), (done).last_position
    FROM (SELECT :schema.append({}) AS done{}) AS once
"""

# The primary keys of both tables.
_EVENTS = """
    SELECT stream, version, topic, state FROM (
        SELECT stream, version, topic, state FROM :schema.job_events WHERE stream = %(stream)s
        UNION ALL
        SELECT stream, version, topic, state FROM :schema.occurrence_events
        WHERE stream = %(stream)s
    ) AS both_tables
    WHERE version > coalesce(%(gt)s, -1) AND version <= coalesce(%(lte)s, 2147483647)
    ORDER BY version {} LIMIT %(limit)s
"""

# The position indexes of both tables, merged; each branch stops after `limit` rows.
_BRANCH = """
    (SELECT position, stream, version, topic, state FROM :schema.{}
     WHERE position > %(after)s AND (%(stop)s::bigint IS NULL OR position <= %(stop)s)
       AND (%(topics)s::text[] IS NULL OR topic = ANY (%(topics)s))
     ORDER BY position LIMIT %(limit)s)
"""
_NOTIFICATIONS = "SELECT * FROM ({} UNION ALL {}) AS both_tables ORDER BY position LIMIT %(limit)s"
_LAST = """
    SELECT greatest((SELECT max(position) FROM :schema.job_events),
                    (SELECT max(position) FROM :schema.occurrence_events))
"""
_PLACES = """
    SELECT e.stream, e.version, e.topic, e.state, e.position
    FROM unnest(%b, %b) AS wanted (stream, version)
    CROSS JOIN LATERAL (
        SELECT * FROM :schema.job_events j
        WHERE j.stream = wanted.stream AND j.version = wanted.version
        UNION ALL
        SELECT * FROM :schema.occurrence_events o
        WHERE o.stream = wanted.stream AND o.version = wanted.version
    ) AS e
"""
_PARTITION = """
    SELECT partition, version, instance, token FROM :schema.partitions WHERE stream = %s
"""


class PostgresLogRecorder(PostgresLogTracking, ProcessRecorder):
    """Stores and selects events, notifies, tracks.

    Horolog's events are folded onto what the log holds and stored with the rows of the read models,
    under the guards that Horolog's own appends have. Anything else is refused, as is a state that
    is not plain JSON: Horolog's processes read the same log and would stop at it.

    With ``plain`` the namespace is nothing but an event store, for any topic and any state (an
    encrypted one, say) and without read models. Give that a namespace of its own, for the
    aggregates of a process that follows Horolog's log: no scanner may work on it.
    """

    def __init__(
        self,
        database: Database,
        *,
        plain: bool = False,
        follower: str = "",
        patience_s: float = 5.0,
        news_horizon_s: float = 60.0,
    ) -> None:
        super().__init__(database, follower=follower, patience_s=patience_s)
        self.plain = plain
        self._news_horizon_s = news_horizon_s
        self._states = PostgresStates(database)
        self._clock = PostgresClock(database)
        placeholders = ", ".join(["%b"] * ARGUMENTS)
        moved = " WHERE :schema.track(%s, %s) > 0"
        self._insert = database.sql(_INSERT.format(placeholders, ""))
        self._insert_tracked = database.sql(_INSERT.format(placeholders, moved))
        self._oldest_first = database.sql(_EVENTS.format("ASC"))
        self._newest_first = database.sql(_EVENTS.format("DESC"))
        branches = (_BRANCH.format("job_events"), _BRANCH.format("occurrence_events"))
        self._notifications = database.sql(_NOTIFICATIONS.format(*branches))
        self._last = database.sql(_LAST)
        self._places = database.sql(_PLACES)
        self._partition = database.sql(_PARTITION)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Stores all of the events, or none; returns their positions in the log.

        With ``tracking`` the follower moves on in the same transaction. Raises ``IntegrityError``
        where an event's place is taken, is not the next of its stream, or what the events were
        decided from has changed, and where the follower has been there already; ``DataError`` for
        what is no event of Horolog. After a cut connection the recorder finds out whether its own
        events are in the log, and answers as if nothing had been interrupted; it raises
        ``OperationalError`` only where it cannot find out.
        """
        tracking: Tracking | None = kwargs.get("tracking")
        if not stored_events:
            if tracking is not None:
                self.insert_tracking(tracking)
            return None
        batch = self._batch(stored_events)
        with library_errors():

            def write() -> list[int]:
                statement, params = self._insert, batch
                if tracking is not None:
                    follower = self.name_of(tracking.application_name)
                    statement = self._insert_tracked
                    params = [*batch, follower, tracking.notification_id]
                ((_, last),) = self.database.query(statement, params)
                return list(range(last - len(stored_events) + 1, last + 1))

            def recognise() -> list[int] | None:
                return self._own_positions(stored_events, tracking)

            return written_once(write, recognise, self.patience_s)

    @retried
    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        params = {"stream": _stream(originator_id), "gt": gt, "lte": lte, "limit": limit}
        statement = self._newest_first if desc else self._oldest_first
        with library_errors():
            rows = self.database.query(statement, params)
        return [StoredEvent(stream, v, topic, bytes(state)) for stream, v, topic, state in rows]

    @retried
    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Events by position. Positions grow but have gaps, where an append was taken back."""
        after = 0 if start is None else start - 1 if inclusive_of_start else start
        wanted = {"after": after, "stop": stop, "topics": list(topics) or None, "limit": limit}
        with library_errors():
            rows = self.database.query(self._notifications, wanted)
        return [
            Notification(stream, version, topic, bytes(state), position)
            for position, stream, version, topic, state in rows
        ]

    @retried
    def max_notification_id(self) -> int | None:
        with library_errors():
            ((last,),) = self.database.query(self._last)
        return cast("int | None", last)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        subscription = PostgresLogSubscription(self, gt=gt, topics=topics)
        return cast("Subscription[ApplicationRecorder]", subscription)

    @retried
    def _batch(self, stored_events: Sequence[StoredEvent]) -> list[Any]:
        """The arguments of ``append``: the events byte for byte, and the rows that they mean."""
        with library_errors():
            return self._plain(stored_events) if self.plain else self._folded(stored_events)

    def _plain(self, stored_events: Sequence[StoredEvent]) -> list[Any]:
        decisions = [Decision(Guard("nothing", UUID(int=0), 0), -1)]
        rows = [
            EventRow(1, _stream(e.originator_id), e.originator_version, e.topic, e.state, False)
            for e in stored_events
        ]
        return packed(decisions, None, self._news_horizon_s, rows)

    def _folded(self, stored_events: Sequence[StoredEvent]) -> list[Any]:
        events = [_new_event(stored) for stored in stored_events]
        decisions = folded(events, self._states, self._partition_of, self._clock.now)
        numbers = {
            event.stream: number
            for number, decision in enumerate(decisions, 1)
            for event in decision.events
        }
        rows = [
            EventRow(
                numbers[new.stream],
                new.stream,
                new.version,
                stored.topic,
                stored.state,
                in_occurrences(new.event),
            )
            for stored, new in zip(stored_events, events, strict=True)
        ]
        return packed(decisions, _speaking_for(events), self._news_horizon_s, rows)

    def _partition_of(self, stream: UUID) -> PartitionState | None:
        rows = self.database.query(self._partition, (stream,))
        if not rows:
            return None
        partition, version, instance, token = rows[0]
        return PartitionState(stream, partition, version, instance, token)

    def _own_positions(
        self, stored_events: Sequence[StoredEvent], tracking: Tracking | None
    ) -> list[int] | None:
        """The positions of these very events, if the log holds them; ``None`` if it does not."""
        streams = [_stream(stored.originator_id) for stored in stored_events]
        versions = [stored.originator_version for stored in stored_events]
        found = {
            (stream, version): (topic, bytes(state), position)
            for stream, version, topic, state, position in self.database.query(
                self._places, (Uuids(streams), Ints(versions))
            )
        }
        positions: list[int] = []
        for stored, place in zip(stored_events, zip(streams, versions, strict=True), strict=True):
            topic, state, position = found.get(place, ("", b"", 0))
            if (topic, state) != (stored.topic, stored.state):
                return None
            positions.append(position)
        if tracking is not None:
            name, tracked = tracking.application_name, tracking.notification_id
            return positions if self.has_tracking_id(name, tracked) else None
        return positions


def _stream(originator_id: UUID | str) -> UUID:
    return originator_id if isinstance(originator_id, UUID) else UUID(originator_id)


def _new_event(stored: StoredEvent) -> NewEvent:
    stream, version = _stream(stored.originator_id), stored.originator_version
    event = read_event(stored.topic, stored.state, where=f"{stream}:{version}")
    return NewEvent(stream, version, event)


def _speaking_for(events: Sequence[NewEvent]) -> Fences | None:
    """The instance whose election or release is stored: its own running lease is no obstacle."""
    for new in events:
        if isinstance(new.event, Elected | Released):
            return Fences(new.event.instance, {})
    return None
