"""Triggering: one extra run of a job, beside its schedule."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.commands.changing import known_job
from horolog.application.commands.context import MAX_TRIES, Context, Entropy, too_busy
from horolog.application.decision import decide_on_job
from horolog.domain.errors import InvalidPolicy, InvalidSchedule, UnknownOccurrence
from horolog.domain.job import decide_trigger
from horolog.domain.occurrence import OccurrenceState, ordered
from horolog.domain.text import is_storable
from horolog.projections.rows import occurrence_next_run

MAX_REQUEST_ID = 256
_SALT_BYTES = 12


class FindsTriggers(Protocol):
    """Errors: ``StoreUnavailable``."""

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        """The occurrence that this request has ordered of this job, if it has."""
        ...


def trigger(
    context: Context,
    requests: FindsTriggers,
    job_id: UUID,
    *,
    at: datetime | None = None,
    request_id: str | None = None,
    salt: str | None = None,
    reason: str | None = None,
) -> OccurrenceState:
    """Orders a run at ``at`` (aware; now, if absent). The same request id is the same run.

    ``salt`` is what tells a run without a request id apart, where it was drawn before.

    Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidSchedule`` for a time that
    has no zone or that no id can hold, ``InvalidPolicy`` for a request id that cannot be kept.
    """
    check_time(at)
    check_request_id(request_id)
    origin = context.origin(reason)
    salt = request_id or salt or drawn_salt(context.entropy)
    for _ in range(MAX_TRIES):
        job = known_job(context, job_id)
        if request_id is not None and (found := requests.triggered(job_id, request_id)):
            return _as_it_is(context, found)
        moment = context.clock.now() if at is None else at
        (event,) = decide_trigger(job, at=moment, request_id=request_id, salt=salt, origin=origin)
        decision, _after = decide_on_job(job, job_id, [event])
        occurrence = ordered(event.occurrence_id, job_id, job.partition, moment, "trigger")
        decision.next_runs.append(occurrence_next_run(occurrence))
        if context.accepts(decision) is not None:
            return occurrence
    raise too_busy(f"job {job_id}")


def drawn_salt(entropy: Entropy) -> str:
    """What tells a run apart from all others of the same job and instant."""
    return entropy.draw(_SALT_BYTES).hex()


def _as_it_is(context: Context, occurrence_id: UUID) -> OccurrenceState:
    state = context.states.occurrence(occurrence_id)
    if state is None:
        raise UnknownOccurrence(
            f"occurrence {occurrence_id} of this request is no longer kept: retention removed it"
        )
    return state


def check_time(at: datetime | None) -> None:
    """Raises ``InvalidSchedule`` for a time that has no zone or that no id can hold."""
    if at is None:
        return
    check_aware("at", at)
    if not 1970 <= at.year < 9999:
        raise InvalidSchedule(f"at={at.isoformat()}: a run can be ordered from 1970 to 9998")


def check_aware(name: str, moment: datetime) -> None:
    """Raises ``InvalidSchedule`` for what is no instant: another type, or no zone."""
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidSchedule(
            f"{name}={moment!r} is a {type(moment).__name__}: give a datetime with a zone"
        )
    if moment.tzinfo is None:
        raise InvalidSchedule(
            f"{name}={moment.isoformat()} has no zone: add an offset such as +00:00"
        )


def check_request_id(request_id: str | None) -> None:
    """Raises ``InvalidPolicy`` for a request id that cannot be kept."""
    if request_id is None:
        return
    if (
        not isinstance(request_id, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        or not 0 < len(request_id) <= MAX_REQUEST_ID
        or not is_storable(request_id)
    ):
        raise InvalidPolicy(
            f"request_id={str(request_id)[:80]!r}: a request id is text of 1 to {MAX_REQUEST_ID}"
            " characters without NUL"
        )
