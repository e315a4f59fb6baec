"""What a job was at each instant: its definitions, with the time from which each was in force."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from uuid import UUID

from horolog.domain.definition import JobDefinition
from horolog.domain.job import JobState, evolve
from horolog.domain.job_events import JobEvent, Registered, Rescheduled

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Era:
    """A definition that was in force from ``since`` to before ``until``, both ``None`` for ever.

    ``version`` is the job's version that brought it. Its schedule began with ``first_fire``, from
    which a limit of runs is counted.
    """

    version: int
    definition: JobDefinition
    first_fire: datetime | None
    since: datetime | None
    until: datetime | None

    def fires(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The fire times from ``start`` to ``end``, both included, that belong to this era."""
        schedule = self.definition.parsed_schedule()
        low = start if self.since is None else max(start, self.since)
        high = end if self.until is None else min(end, self.until - _TICK)
        if low > high:
            return
        if schedule.limit is None:
            yield from (fire.at for fire in schedule.between(low - _TICK, high))
        elif self.first_fire is not None:
            limited = islice(schedule.fires(self.first_fire - _TICK), schedule.limit)
            for fire in takewhile(lambda fire: fire.at <= high, limited):
                if fire.at >= low:
                    yield fire.at


def eras(job_id: UUID, events: Iterable[tuple[int, datetime, JobEvent]]) -> Sequence[Era]:
    """The eras of a job, oldest first, from the events that defined it: version, time, event.

    Before it was registered the first definition holds: a backfill may go back behind that.
    """
    found: list[Era] = []
    state: JobState | None = None
    first_fire: datetime | None = None
    for version, recorded_at, event in events:
        state = evolve(state, job_id, event)
        if isinstance(event, Registered | Rescheduled):
            first_fire = event.next_fire
        if found:
            last = found.pop()
            found.append(
                Era(last.version, last.definition, last.first_fire, last.since, recorded_at)
            )
        since = recorded_at if found else None
        found.append(Era(version, state.definition, first_fire, since, None))
    return found
