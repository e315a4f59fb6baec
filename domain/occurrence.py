"""An occurrence: one firing of a job, from its claim to its end.

``evolve`` folds an event into the state; ``decide_*`` answer what happens to it with events.
Versions are consecutive, so a late outcome of an attempt that was given up meets a version conflict
in the log and is refused: that, not a timeout, is what keeps a zombie's result out.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal
from uuid import UUID

from horolog.domain.definition import OnUnknown
from horolog.domain.errors import NotAllowed
from horolog.domain.event import Event
from horolog.domain.failure import FailureKind, is_worth_repeating
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause
from horolog.domain.occurrence_events import (
    Attempted,
    CancelRequested,
    Claimed,
    DeadLettered,
    DeathCause,
    Discarded,
    Failed,
    Lost,
    OccurrenceEvent,
    Recalled,
    Replayed,
    Skipped,
    Snoozed,
    Stopped,
    Succeeded,
)
from horolog.domain.origin import Origin
from horolog.domain.record import record
from horolog.domain.retry import Retry
from horolog.domain.text import storable

Phase = Literal[
    "scheduled",
    "claimed",
    "running",
    "stopping",  # it runs, and was asked to stop
    "retrying",
    "succeeded",
    "dead",
    "skipped",
    "discarded",
]
FINISHED: frozenset[Phase] = frozenset({"succeeded", "dead", "skipped", "discarded"})


@record
class OccurrenceState:
    """An occurrence as the log has it at ``version`` (0: ordered, but nothing has happened yet).

    ``attempt`` is the number of the last try claimed; ``failures`` how much of the retry budget is
    used. An unfinished one needs attention again at ``due``, or ``look_after_s`` seconds after its
    last event. ``definition_version`` is the job's version whose definition it runs; absent, it is
    the one that the job has when it is claimed.
    """

    id: UUID
    job_id: UUID
    partition: int
    fire_time: datetime
    kind: OccurrenceKind
    version: int
    state: Phase
    attempt: int = 0
    failures: int = 0
    due: datetime | None = None
    look_after_s: float | None = None
    error: str = ""
    definition_version: int | None = None

    @property
    def finished(self) -> bool:
        return self.state in FINISHED


def ordered(
    occurrence_id: UUID,
    job_id: UUID,
    partition: int,
    at: datetime,
    kind: OccurrenceKind,
    due: datetime | None = None,
    definition_version: int | None = None,
) -> OccurrenceState:
    """An occurrence that was ordered (by a trigger or a backfill), before its claim."""
    return OccurrenceState(
        occurrence_id,
        job_id,
        partition,
        at,
        kind,
        0,
        "scheduled",
        due=due or at,
        definition_version=definition_version,
    )


def evolve(state: OccurrenceState | None, stream: UUID, event: Event) -> OccurrenceState:
    """The state after ``event``, the next one in the occurrence's stream."""
    # The three of every ordinary run are told apart by their exact type, which is several times
    # cheaper than asking pydantic's classes whether the event is an instance of them.
    if type(event) is Claimed:
        before = state or ordered(
            stream, event.job_id, event.partition, event.fire_time, event.kind
        )
        return _next(
            before,
            "claimed",
            attempt=event.attempt,
            look_after_s=event.window,
            definition_version=event.definition_version,
        )
    assert state is not None, f"occurrence {stream} begins with {event.topic}"
    if type(event) is Attempted:
        return _next(state, "running", look_after_s=event.lease)
    if type(event) is Succeeded:
        return _next(state, "succeeded")
    return _evolve_rarely(state, event)


def _evolve_rarely(state: OccurrenceState, event: Event) -> OccurrenceState:
    match event:
        case Failed():
            failures = state.failures + 1
            return _next(
                state, "retrying", failures=failures, due=event.retry_at, error=event.error
            )
        case Lost():
            error = f"attempt {event.attempt} was lost: its worker was not heard of again"
            failures = state.failures + 1
            return _next(state, "retrying", failures=failures, due=event.retry_at, error=error)
        case Snoozed():
            return _next(state, "retrying", due=event.until)
        case CancelRequested():
            # Its lease goes on: from when it was extended last, or from the attempt's beginning.
            return _next(state, "stopping", due=state.due, look_after_s=state.look_after_s)
        case Recalled():
            return _next(state, "scheduled", due=event.at)
        case Replayed():
            return _next(state, "scheduled", due=event.at, failures=0)
        case Skipped() | Stopped():
            return _next(state, "skipped")
        case DeadLettered():
            return _next(state, "dead", error=event.error or state.error)
        case Discarded():
            return _next(state, "discarded")
        case _:
            raise AssertionError(f"{event.topic} is no event of an occurrence")


def _next(
    before: OccurrenceState,
    state: Phase,
    *,
    attempt: int | None = None,
    failures: int | None = None,
    due: datetime | None = None,
    look_after_s: float | None = None,
    error: str | None = None,
    definition_version: int | None = None,
) -> OccurrenceState:
    """The state one version on; what is not named stays, but for when attention is due next.

    Written out: ``dataclasses.replace`` takes as long as all else that a claim costs here.
    """
    return OccurrenceState(
        before.id,
        before.job_id,
        before.partition,
        before.fire_time,
        before.kind,
        before.version + 1,
        state,
        before.attempt if attempt is None else attempt,
        before.failures if failures is None else failures,
        due,
        look_after_s,
        before.error if error is None else error,
        before.definition_version if definition_version is None else definition_version,
    )


def evolve_all(
    state: OccurrenceState | None, stream: UUID, events: Iterable[Event]
) -> OccurrenceState | None:
    """The state after all of ``events``."""
    for event in events:
        state = evolve(state, stream, event)
    return state


def decide_claim(
    state: OccurrenceState, *, job_version: int, token: int, window_s: float, origin: Origin
) -> Claimed:
    """The leader's claim of a scheduled or retrying occurrence that is due."""
    assert state.state in ("scheduled", "retrying"), state.state
    return Claimed(
        job_id=state.job_id,
        job_version=job_version,
        fire_time=state.fire_time,
        attempt=state.attempt + 1,
        partition=state.partition,
        token=token,
        window=window_s,
        kind=state.kind,
        due=state.due if state.kind == "backfill" and state.attempt == 0 else None,
        definition_version=state.definition_version,
        **origin.fields(),
    )


def decide_failure(
    state: OccurrenceState,
    *,
    kind: FailureKind,
    error: str,
    seconds: float,
    retry: Retry,
    now: datetime,
    owner: str | None,
    origin: Origin,
    after_s: float | None = None,
    since: datetime | None = None,
) -> list[OccurrenceEvent]:
    """A failed attempt: tried again later, or dead-lettered in the same breath.

    ``since`` is when its first attempt began: the start of ``retry.max_elapsed``. A run that was
    asked to stop is not tried again, and nobody needs to look at it.
    """
    error = storable(error)
    stopping = state.state == "stopping"
    retry_at = (
        None
        if stopping
        else retry.next_try(kind, state.failures + 1, state.id, now, after_s, since)
    )
    failed = Failed(
        attempt=state.attempt,
        kind=kind,
        error=error,
        seconds=seconds,
        retry_at=retry_at,
        **origin.fields(),
    )
    if stopping:
        return [failed, Skipped(cause="cancelled", **origin.fields())]
    if retry_at is not None:
        return [failed]
    cause: DeathCause = "exhausted" if is_worth_repeating(kind) else "hopeless"
    return [
        failed,
        DeadLettered(cause=cause, owner=owner, kind=kind, error=error, **origin.fields()),
    ]


def decide_loss(
    state: OccurrenceState,
    *,
    retry: Retry,
    on_unknown: OnUnknown,
    now: datetime,
    owner: str | None,
    origin: Origin,
    since: datetime | None = None,
) -> list[OccurrenceEvent]:
    """An attempt whose lease ran out; it counts as one, so a job that kills its worker ends.

    Whatever ``on_unknown`` says, the next attempt is claimed while the job allows one: only a
    worker can ask whether the lost one took effect, and it decides what follows from the answer
    (:func:`decide_unknown`). ``on_unknown`` names what to tell where no attempt is left.
    """
    stopping = state.state == "stopping"
    retry_at = (
        None if stopping else retry.next_try("lost", state.failures + 1, state.id, now, since=since)
    )
    lost = Lost(attempt=state.attempt, retry_at=retry_at, **origin.fields())
    if stopping:
        return [lost, Skipped(cause="cancelled", **origin.fields())]
    if retry_at is not None:
        return [lost]
    cause: DeathCause = "exhausted" if on_unknown == "retry" else "unknown_outcome"
    error = f"attempt {state.attempt} was lost: its worker was not heard of again"
    return [
        lost,
        DeadLettered(cause=cause, owner=owner, kind="lost", error=error, **origin.fields()),
    ]


def decide_unknown(
    state: OccurrenceState, *, seconds: float, owner: str | None, origin: Origin
) -> list[OccurrenceEvent]:
    """An attempt after a lost one, where nobody can say whether that took effect and the job must
    not risk a second time: a person decides, and may order the run all the same (a replay)."""
    error = "whether the lost attempt before this one took effect is not known"
    failed = Failed(
        attempt=state.attempt, kind="lost", error=error, seconds=seconds, **origin.fields()
    )
    if state.state == "stopping":
        return [failed, Skipped(cause="cancelled", **origin.fields())]
    return [
        failed,
        DeadLettered(
            cause="unknown_outcome", owner=owner, kind="lost", error=error, **origin.fields()
        ),
    ]


def decide_skip(
    state: OccurrenceState, cause: SkipCause, *, origin: Origin
) -> list[OccurrenceEvent]:
    """What has not begun does not run; what runs or has ended is left as it is."""
    if state.state in ("scheduled", "claimed", "retrying"):
        return [Skipped(cause=cause, **origin.fields())]
    return []


def decide_cancel(
    state: OccurrenceState, cause: SkipCause, *, origin: Origin
) -> list[OccurrenceEvent]:
    """What has not begun does not run; what runs is asked to stop; what has ended is left alone."""
    if state.state == "running":
        return [CancelRequested(cause=cause, **origin.fields())]
    return decide_skip(state, cause, origin=origin)


def decide_stopped(
    state: OccurrenceState, *, seconds: float, origin: Origin
) -> list[OccurrenceEvent]:
    """The attempt stopped as it was asked to, by the log or, for a cancelled job, by its worker."""
    stopped = Stopped(attempt=state.attempt, cause="cancelled", seconds=seconds, **origin.fields())
    if state.state == "running":
        return [CancelRequested(**origin.fields()), stopped]
    return [stopped]


def decide_snooze(
    state: OccurrenceState, *, until: datetime, seconds: float, origin: Origin
) -> list[OccurrenceEvent]:
    """The attempt is given back until then; what was asked to stop does not come back."""
    if state.state == "stopping":
        return decide_stopped(state, seconds=seconds, origin=origin)
    return [Snoozed(attempt=state.attempt, until=until, **origin.fields())]


def decide_recall(
    state: OccurrenceState, *, now: datetime, origin: Origin
) -> list[OccurrenceEvent]:
    """A claim whose run has not begun is made anew, so that it carries the job as it now is."""
    return [Recalled(at=now, **origin.fields())] if state.state == "claimed" else []


def decide_replay(
    state: OccurrenceState, *, now: datetime, origin: Origin
) -> list[OccurrenceEvent]:
    """A dead letter is tried again under its own key; anything else is refused."""
    _must_be_dead(state, "replay")
    return [Replayed(at=now, **origin.fields())]


def decide_discard(state: OccurrenceState, *, origin: Origin) -> list[OccurrenceEvent]:
    """A dead letter is closed for good; discarding it again changes nothing."""
    if state.state == "discarded":
        return []
    _must_be_dead(state, "discard")
    return [Discarded(**origin.fields())]


def _must_be_dead(state: OccurrenceState, command: str) -> None:
    if state.state != "dead":
        raise NotAllowed(
            f"cannot {command} occurrence {state.id}: it is {state.state},"
            f" and only a dead letter can be"
        )
