"""The commands about one job, carried out at once; one method for each.

The other way to give them is within a client's own transaction
(:mod:`horolog.application.inbox.commands`): the same methods with the same arguments, so that a
caller says a command once and chooses the way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.commands import changing, registering, triggering
from horolog.application.commands.context import Context
from horolog.application.commands.job_spec import JobSpec
from horolog.application.commands.triggering import FindsTriggers
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.schedule import Schedule


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Each returns the state that it leads to, and raises what its function raises."""

    context: Context
    requests: FindsTriggers

    def register(self, spec: JobSpec) -> JobState:
        return registering.register(self.context, spec)

    def reschedule(
        self, job_id: UUID, schedule: Schedule, *, expected_version: int | None, reason: str | None
    ) -> JobState:
        return changing.reschedule(
            self.context, job_id, schedule, expected_version=expected_version, reason=reason
        )

    def update(
        self,
        job_id: UUID,
        *,
        payload: Mapping[str, Any] | None,
        policies: Mapping[str, Any],
        expected_version: int | None,
        reason: str | None,
    ) -> JobState:
        return changing.update(
            self.context,
            job_id,
            payload=payload,
            policies=policies,
            expected_version=expected_version,
            reason=reason,
        )

    def pause(self, job_id: UUID, *, expected_version: int | None, reason: str | None) -> JobState:
        return changing.pause(
            self.context, job_id, expected_version=expected_version, reason=reason
        )

    def resume(
        self, job_id: UUID, *, catch_up: bool, expected_version: int | None, reason: str | None
    ) -> JobState:
        return changing.resume(
            self.context,
            job_id,
            catch_up=catch_up,
            expected_version=expected_version,
            reason=reason,
        )

    def cancel(self, job_id: UUID, *, expected_version: int | None, reason: str | None) -> JobState:
        return changing.cancel(
            self.context, job_id, expected_version=expected_version, reason=reason
        )

    def trigger(
        self, job_id: UUID, *, at: datetime | None, request_id: str | None, reason: str | None
    ) -> OccurrenceState:
        return triggering.trigger(
            self.context, self.requests, job_id, at=at, request_id=request_id, reason=reason
        )
