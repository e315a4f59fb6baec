"""The log up to a position, for time travel: jobs and their last claims, occurrences and orders.

The read models of the present are used as an index into the log (which jobs there are, which
occurrences a job has, which were long unfinished); what they say of a state is not read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pydantic_core import from_json

from horolog.application.log import Recorded
from horolog.application.queries.past_ports import (
    LEAD,
    ClaimsSought,
    MaybeOpen,
    Move,
    PastJob,
    StoredEvent,
)
from horolog.domain.event import read_event
from horolog.domain.ids import OccurrenceKind, fire_time_floor, log_stream
from horolog.domain.log_events import OccurrencesPruned
from horolog.infrastructure.postgres.arrays import BigInts, Uuids
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.position_at import PostgresPositions
from horolog.infrastructure.postgres.recorded import recorded

QUICK: Final = timedelta(minutes=10)
"""What takes longer from its fire time to its end is in executions_long (migrations/0002)."""

# The primary key of jobs; jobs_name where a name is given.
_JOB_IDS = """
    SELECT j.id FROM :schema.jobs j WHERE j.id > %(after)s {condition} ORDER BY j.id LIMIT %(limit)s
"""
# The primary key of job_events: a job's last event by then, and of those up to it the ones that
# make its state. Of dropped ranges the last one will do: it says how far the schedule had come.
_JOBS_AT = """
    WITH known AS MATERIALIZED (
        SELECT w.id, l.version FROM unnest(%(ids)b) AS w (id)
        CROSS JOIN LATERAL (
            SELECT e.version, e.topic FROM :schema.job_events e
            WHERE e.stream = w.id AND e.position <= %(position)s
            ORDER BY e.version DESC LIMIT 1) l
        WHERE NOT (%(active)s AND l.topic IN ('job.paused.1', 'job.cancelled.1', 'job.completed.1'))
    )
    SELECT k.id, k.version, s.position, s.state, e.position, e.version, e.topic, e.state
    FROM known k
    JOIN :schema.job_events e ON e.stream = k.id AND e.version <= k.version
    LEFT JOIN LATERAL (
        SELECT s.position, s.state FROM :schema.job_events s
        WHERE k.version > 1 AND s.stream = k.id AND s.version <= k.version
          AND s.topic = 'job.fires_skipped.1'
        ORDER BY s.version DESC LIMIT 1) s ON e.version = 1
    WHERE e.topic NOT IN ('job.triggered.1', 'job.backfill_requested.1', 'job.fires_skipped.1')
    ORDER BY e.stream, e.version
"""
# executions_job backwards, next_runs_unfinished, and the primary key of the events: the latest fire
# time of the schedule whose claim is old enough.
_LAST_CLAIMS = """
    SELECT w.number, e.position, e.state
    FROM unnest(%(jobs)b, %(since)b, %(after)b) WITH ORDINALITY AS w (job, since, after, number)
    CROSS JOIN LATERAL (
        (SELECT e.position, e.state FROM :schema.executions x
         JOIN :schema.occurrence_events e ON e.stream = x.id AND e.version = 1
         WHERE x.job_id = w.job AND x.id >= w.since AND x.id < %(until)s AND {of_the_schedule}
         ORDER BY x.id DESC LIMIT 1)
        UNION ALL
        (SELECT e.position, e.state FROM :schema.next_runs x
         JOIN :schema.occurrence_events e ON e.stream = x.id AND e.version = 1
         WHERE x.job_id = w.job AND x.kind <> 'job' AND x.id >= w.since AND x.id < %(until)s
           AND {of_the_schedule}
         ORDER BY x.id DESC LIMIT 1)
    ) e
""".replace(
    "{of_the_schedule}",
    # + 0: by the index of positions it would be half the log that is read, for one run of it.
    "x.kind = 'schedule' AND e.position + 0 > w.after AND e.position + 0 <= %(position)s"
    " AND e.topic = 'occurrence.claimed.1'",
)
# The primary key of job_events: what left the log with the claims of old runs (retention).
_PRUNED = """
    SELECT e.topic, e.state FROM :schema.job_events e
    WHERE e.stream = %s AND e.topic = 'log.occurrences_pruned.1' ORDER BY e.version
"""
# next_runs_unfinished; the primary key of executions for the quick ones of the last minutes;
# executions_long; job_events_ordered for what was ordered for later.
_MAYBE_OPEN = """
    SELECT r.id, r.job_id, r.kind FROM :schema.next_runs r WHERE r.kind <> 'job'
    UNION
    SELECT x.id, x.job_id, x.kind FROM :schema.executions x
    WHERE x.id >= %(begin)s AND x.id < %(until)s AND x.finished_at > %(moment)s
    UNION
    SELECT x.id, x.job_id, x.kind FROM :schema.executions x
    WHERE x.finished_at - x.fire_time > interval '10 minutes'
      AND tstzrange(x.fire_time, x.finished_at, '[]') @> %(moment)s::timestamptz
    UNION
    SELECT (:schema.decoded(e.state) ->> 'occurrence_id')::uuid, e.stream, 'trigger'
    FROM :schema.job_events e
    WHERE e.topic = 'job.triggered.1' AND e.position <= %(position)s
      AND (:schema.decoded(e.state) ->> 'occurrence_id') COLLATE "C" >= %(begin)s::text
"""
# The primary key of the month's events.
_EVENTS = """
    SELECT e.position, e.recorded_at, e.stream, e.version, e.topic, e.state
    FROM unnest(%(ids)b) AS w (id) JOIN :schema.occurrence_events e ON e.stream = w.id
    WHERE e.position <= %(position)s ORDER BY e.stream, e.version
"""
# job_events_ordered for triggers, the primary key of job_events for backfills.
_ORDERS = """
    SELECT e.position, e.recorded_at, e.stream, e.version, e.topic, e.state
    FROM unnest(%(ids)b) AS w (id) JOIN :schema.job_events e
      ON e.topic = 'job.triggered.1'
     AND (:schema.decoded(e.state) ->> 'occurrence_id') COLLATE "C" = w.id::text
    WHERE e.position <= %(position)s
    UNION ALL
    SELECT e.position, e.recorded_at, e.stream, e.version, e.topic, e.state
    FROM unnest(%(jobs)b) AS w (job) JOIN :schema.job_events e
      ON e.stream = w.job AND e.topic = 'job.backfill_requested.1'
    WHERE e.position <= %(position)s
"""
T = TypeVar("T")

_NIL = UUID(int=0)
_PART = 5_000


class PostgresPast(PostgresPositions):
    """As :class:`horolog.application.queries.past_ports.ReadsPast` promises."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._jobs_at = database.sql(_JOBS_AT)
        self._last_claims = database.sql(_LAST_CLAIMS)
        self._pruned = database.sql(_PRUNED)
        self._maybe_open = database.sql(_MAYBE_OPEN)
        self._events = database.sql(_EVENTS)
        self._orders = database.sql(_ORDERS)

    def job_ids(self, *, name: str | None, after: UUID | None, limit: int) -> list[UUID]:
        params: dict[str, Any] = {"after": after or _NIL, "limit": limit, "name": name}
        condition = "" if name is None else "AND j.name = %(name)s"
        statement = self._database.sql(_JOB_IDS.format(condition=condition))
        return [identity for (identity,) in self._database.query(statement, params)]

    def jobs_at(self, ids: Sequence[UUID], position: int, *, active: bool = False) -> list[PastJob]:
        found: list[PastJob] = []
        for part in _parts(ids):
            params = {"ids": Uuids(part), "position": position, "active": active}
            events: list[StoredEvent] = []
            for row in self._database.query(self._jobs_at, params):
                event = StoredEvent._make(row[4:])
                if event.version == 1:
                    events = []
                    dropped = None if row[2] is None else _move(row[2], row[3])
                    found.append(PastJob(row[0], row[1], events, dropped))
                events.append(event)
        return found

    def last_claims(
        self, sought: Sequence[ClaimsSought], moment: datetime, position: int
    ) -> dict[UUID, Move]:
        found = self._pruned_claims(sought, position)
        for part in _parts(sought):
            params = {
                "jobs": Uuids([one.job_id for one in part]),
                "since": Uuids([fire_time_floor(one.since) for one in part]),
                "after": BigInts([one.after for one in part]),
                "until": fire_time_floor(moment + LEAD),
                "position": position,
            }
            for number, at, state in self._database.query(self._last_claims, params):
                _put(found, part[int(number) - 1].job_id, _move(at, state))
        return found

    def _pruned_claims(self, sought: Sequence[ClaimsSought], position: int) -> dict[UUID, Move]:
        """The last claim of each job that left the log, where it was made by then."""
        found: dict[UUID, Move] = {}
        rows = self._database.query(self._pruned, (log_stream(self._database.namespace),))
        if rows:
            after = {one.job_id: one.after for one in sought}
            for topic, state in rows:
                event = read_event(topic, bytes(state))
                assert isinstance(event, OccurrencesPruned)
                for move in event.moves:
                    if move.job_id in after and after[move.job_id] < move.position <= position:
                        _put(found, move.job_id, Move(move.position, move.fires, move.next_fire))
        return found

    def maybe_open(self, moment: datetime, position: int) -> list[MaybeOpen]:
        params = {
            "moment": moment,
            "position": position,
            "begin": fire_time_floor(moment - QUICK - LEAD),
            "until": fire_time_floor(moment + LEAD),
        }
        rows = self._database.query(self._maybe_open, params)
        events: dict[UUID, list[Recorded]] = {}
        for part in _parts([row[0] for row in rows]):
            read = {"ids": Uuids(part), "position": position}
            for row in self._database.query(self._events, read):
                event = recorded(row)
                events.setdefault(event.stream, []).append(event)
        return [
            MaybeOpen(identity, job_id, cast("OccurrenceKind", kind), events.get(identity, []))
            for identity, job_id, kind in rows
        ]

    def orders(self, occurrences: Mapping[UUID, UUID], position: int) -> list[Recorded]:
        found: list[Recorded] = []
        for part in _parts(list(occurrences)):
            jobs = sorted({occurrences[identity] for identity in part})
            params = {"ids": Uuids(part), "jobs": Uuids(jobs), "position": position}
            found += (recorded(row) for row in self._database.query(self._orders, params))
        return found


def _put(found: dict[UUID, Move], job_id: UUID, move: Move) -> None:
    known = found.get(job_id)
    if known is None or known.fires < move.fires:
        found[job_id] = move


def _move(position: int, state: bytes) -> Move:
    """What a claim, or a dropped range, says of the schedule; read for each job, so no more of it
    than is needed."""
    said = from_json(state)
    following = said.get("next_fire")
    return Move(
        position,
        said.get("fires", 0),
        None if following is None else datetime.fromisoformat(following),
    )


def _parts(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + _PART] for start in range(0, len(items), _PART)]
