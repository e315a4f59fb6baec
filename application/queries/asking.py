"""The questions about jobs, their fire times and their history that the read models answer."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from uuid import UUID

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.occurrence import Occurrence
from horolog.application.commands.context import Context
from horolog.application.commands.defining import checked_schedule
from horolog.application.log import ReadsLog
from horolog.application.queries.limit import checked_limit
from horolog.application.queries.ports import ListsOccurrences
from horolog.domain.errors import InvalidPolicy, UnknownJob, UnknownOccurrence
from horolog.domain.event import topics as known_topics
from horolog.domain.ids import keyed_job_id, partition_stream
from horolog.domain.job import JobState
from horolog.domain.schedule import FireTime, Schedule, ScheduleDifference, difference
from horolog.domain.text import is_storable

_TICK = timedelta(microseconds=1)


def find_job(context: Context, id_or_key: UUID | str, identity: UUID | None) -> JobState:
    """The job with this id (``identity``, where it is one) or else this key; ``UnknownJob``.

    One that is committed in the inbox, and not carried out yet, is carried out now.
    """
    is_key = isinstance(id_or_key, str) and is_storable(id_or_key)

    def find() -> JobState | None:
        state = None if identity is None else context.states.job(identity)
        return context.states.job_by_key(str(id_or_key)) if state is None and is_key else state

    state = find()
    if state is None and context.settle is not None:
        ids = [] if identity is None else [identity]
        ids += [keyed_job_id(context.namespace, str(id_or_key))] if is_key else []
        settled = [context.settle(one) for one in ids]
        state = find() if any(settled) else None
    if state is None:
        raise UnknownJob(f"no job has the id or key {str(id_or_key)!r} in this namespace")
    return state


def then(state: JobState | None, id_or_key: UUID | str, moment: datetime) -> JobState:
    """The state that the job had; ``UnknownJob`` where it was not registered by then."""
    if state is None:
        raise UnknownJob(f"job {str(id_or_key)!r} was not registered by {moment.isoformat()}")
    return state


def find_occurrence(occurrences: ListsOccurrences, occurrence_id: UUID) -> Occurrence:
    """The occurrence, finished or not; ``UnknownOccurrence``."""
    found = occurrences.occurrence(occurrence_id)
    if found is None:
        raise UnknownOccurrence(f"no occurrence has the id {occurrence_id} in this namespace")
    return found


def upcoming(job: JobState, n: int) -> list[FireTime]:
    """The next ``n`` fire times of an active job, what its limit leaves of them; else none."""
    checked_limit(n, name="n")
    if job.status != "active" or job.next_fire is None:
        return []
    schedule = job.definition.parsed_schedule()
    left = n if schedule.limit is None else min(n, schedule.limit - job.fires)
    fires: list[FireTime] = []
    after = job.next_fire - _TICK
    while len(fires) < left and (fire := schedule.next_after(after)) is not None:
        fires.append(fire)
        after = fire.at
    return fires


def compared(job: JobState, schedule: Schedule, n: int, *, now: datetime) -> ScheduleDifference:
    """The job's schedule, as far as its limit still goes, beside another one from ``now`` on."""
    checked_limit(n, name="n")
    present = job.definition.parsed_schedule()
    if present.limit is not None:
        left = max(present.limit - job.fires, 0)
        present = present.model_copy(update={"limit": left or None, "start": None})
        if not left:
            present = present.model_copy(update={"end": now})
    return difference(present, checked_schedule(schedule).anchored(now, str(job.id)), now, n)


def history(log: ReadsLog, stream: UUID, *, after: int, limit: int) -> list[LoggedEvent]:
    """The events of a stream with a version above ``after``, oldest first."""
    recorded = log.stream(stream, after=after, limit=checked_limit(limit))
    return [LoggedEvent.of(event) for event in recorded]


def stream_of(context: Context, place: UUID | str | int, identity: UUID | None) -> UUID:
    """The stream of a job (by id or key), an occurrence (by id) or a partition (by number)."""
    if isinstance(place, int):
        if not 0 <= place < context.partitions:
            raise InvalidPolicy(
                f"partition {place}: this namespace has partitions 0 to {context.partitions - 1}"
            )
        return partition_stream(context.namespace, place)
    return identity or find_job(context, place, None).id


def checked_topics(wanted: Sequence[str] | str | None) -> list[str]:
    """The topics themselves; ``InvalidPolicy`` for one that no event of this release has.

    A topic may be given without its version, or as a group: ``occurrence.claimed``, ``occurrence``.
    """
    given = [wanted] if isinstance(wanted, str) else wanted or ()
    if not isinstance(given, Sequence | AbstractSet):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPolicy(f"topics={wanted!r}: give topics, such as ['occurrence.failed']")
    found: list[str] = []
    for topic in given:
        meant = [known for known in known_topics() if f"{known}.".startswith(f"{topic}.")]
        if not meant:
            raise InvalidPolicy(
                f"topic {topic!r}: no event has it; there are {', '.join(known_topics())}"
            )
        found += meant
    return sorted(set(found))
