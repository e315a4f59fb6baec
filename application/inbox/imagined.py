"""A job as it would be: a log in memory that accepts everything, for one job and one client.

The commands that run at the call are the ones that will carry it out later; what they append here
is forgotten.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences
from horolog.domain.job import JobState, evolve
from horolog.domain.job_events import Triggered
from horolog.domain.occurrence import OccurrenceState, ordered


@dataclass(frozen=True, slots=True)
class Order:
    """A run that a request has ordered."""

    occurrence_id: UUID
    fire_time: datetime


class Imagined:
    """As :class:`AppendsToLog`, :class:`ReadsStates` and :class:`FindsTriggers` promise, of one
    job; what others do to it meanwhile is not known here.

    ``changed`` says whether anything was appended since it was last set.
    """

    def __init__(
        self, job_id: UUID, present: JobState | None, now: datetime, orders: dict[str, Order]
    ) -> None:
        self.changed = False
        self._id = job_id
        self._state = present
        self._now = now
        self._orders = orders

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:  # noqa: ARG002 - a port
        for decision in decisions:
            for new in decision.events:
                self._state = evolve(self._state, self._id, new.event)
                if isinstance(new.event, Triggered) and new.event.request_id is not None:
                    order = Order(new.event.occurrence_id, new.event.fire_time)
                    self._orders[new.event.request_id] = order
                self.changed = True
        return Appended(["accepted"] * len(decisions), 0, self._now)

    def job(self, job_id: UUID) -> JobState | None:
        return self._state if job_id == self._id else None

    def job_by_key(self, key: str) -> JobState | None:
        return self._state if self._state is not None and self._state.key == key else None

    def jobs(self, ids: Sequence[UUID]) -> dict[UUID, JobState]:
        return {one: state for one in ids if (state := self.job(one)) is not None}

    def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        for order in self._orders.values():
            if order.occurrence_id == occurrence_id and self._state is not None:
                partition = self._state.partition
                return ordered(occurrence_id, self._id, partition, order.fire_time, "trigger")
        return None

    def unfinished(
        self,
        job_id: UUID,  # noqa: ARG002 - a port
        *,
        after: UUID | None = None,  # noqa: ARG002 - a port
        limit: int = 1000,  # noqa: ARG002 - a port
    ) -> list[OccurrenceState]:
        return []

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:  # noqa: ARG002 - a port
        order = self._orders.get(request_id)
        return None if order is None else order.occurrence_id
