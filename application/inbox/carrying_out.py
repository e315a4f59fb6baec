"""Carrying out a command from the inbox: the ordinary command, as it was given."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict

from horolog.application.commands import changing
from horolog.application.commands.context import Context
from horolog.application.commands.registering import register
from horolog.application.commands.triggering import FindsTriggers, trigger
from horolog.application.inbox.given import (
    AnyGiven,
    GivenCancel,
    GivenPause,
    GivenRegistration,
    GivenReschedule,
    GivenResume,
    GivenTrigger,
    GivenUpdate,
)
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.schedule import schedule_from_json


class _Same(TypedDict):
    expected_version: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class _Then:
    """The moment at which the command was given."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def as_given(context: Context, given: AnyGiven) -> Context:
    """The surroundings of the command: its own time, its own giver."""
    return replace(
        context,
        clock=_Then(given.given_at),
        actor=given.actor,
        correlation=given.correlation,
        traceparent=lambda: given.traceparent,
    )


def carry_out(
    context: Context, requests: FindsTriggers, given: AnyGiven
) -> JobState | OccurrenceState:
    """What the command of that kind does and raises, by whom and when it was given."""
    context = as_given(context, given)
    same: _Same = {"expected_version": given.expected_version, "reason": given.reason}
    match given:
        case GivenRegistration():
            return register(context, given.spec(), drawn=given.job_id)
        case GivenTrigger():
            return trigger(
                context,
                requests,
                given.job_id,
                at=given.at,
                request_id=given.request_id,
                salt=given.salt,
                reason=given.reason,
            )
        case GivenReschedule():
            schedule = schedule_from_json(given.schedule)
            return changing.reschedule(context, given.job_id, schedule, **same)
        case GivenUpdate():
            return changing.update(
                context,
                given.job_id,
                payload=given.payload,
                policies=given.checked_policies(),
                **same,
            )
        case GivenPause():
            return changing.pause(context, given.job_id, **same)
        case GivenResume():
            return changing.resume(context, given.job_id, catch_up=given.catch_up, **same)
        case GivenCancel():
            return changing.cancel(context, given.job_id, **same)
