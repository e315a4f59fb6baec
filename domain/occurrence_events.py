"""What can happen to an occurrence, one firing of a job.

    scheduled ─Claimed─▶ claimed ─Attempted─▶ running ─Succeeded─▶ succeeded
        ▲                   │ ▲                  │
        │ Recalled          │ └────Claimed──── retrying ◀─Failed, Lost, Snoozed
        └───────────────────┘                    │
    dead ─Replayed─▶ scheduled      DeadLettered └─▶ dead ─Discarded─▶ discarded
    running ─CancelRequested─▶ stopping ─Stopped─▶ skipped

A run that was asked to stop may do otherwise: whatever outcome it has is accepted, but it is not
tried again. ``attempt`` numbers the tries of one occurrence and never goes back, so that the
message of a retry or of a replay is never taken for an earlier one.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from horolog.domain.event import Event
from horolog.domain.failure import FailureKind
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause

DeathCause = Literal["exhausted", "hopeless", "unknown_handler", "unknown_outcome", "operator"]


class OccurrenceEvent(Event):
    """Any of the events below."""


class Claimed(OccurrenceEvent, topic="occurrence.claimed.1"):
    """The leader's fenced decision that the occurrence goes to the ready queue now.

    ``token`` is the fencing token of the election under which it was decided. ``window`` is in
    seconds: after it the leader looks whether the message is still there. For a fire time of the
    schedule, the first claim also moves the job on: to ``next_fire``, the ``fires``-th used up.
    ``due`` is when it was meant to begin, where jitter or a rate had it begin after its fire time.
    ``definition_version`` is the job's version whose definition it runs, where it is not the
    present one (a backfill).
    """

    job_id: UUID
    job_version: int
    fire_time: datetime
    attempt: int
    partition: int
    token: int
    window: float
    kind: OccurrenceKind = "schedule"
    fires: int | None = None
    next_fire: datetime | None = None
    tzdata: str = ""
    due: datetime | None = None
    definition_version: int | None = None


class Attempted(OccurrenceEvent, topic="occurrence.attempted.1"):
    """The actor, a worker, starts a try; without a sign of it for ``lease`` seconds it is lost.

    ``serial`` numbers what this worker has tried to begin. A worker that got a claim twice and lost
    the log's answer tells by it which of the two copies has begun: the other must not run.
    """

    attempt: int
    lease: float
    serial: int | None = None


class Succeeded(OccurrenceEvent, topic="occurrence.succeeded.1"):
    """The handler returned ``result``, after ``seconds``."""

    attempt: int
    seconds: float = 0.0
    result: Any = None


class Failed(OccurrenceEvent, topic="occurrence.failed.1"):
    """The handler raised; the next try comes at ``retry_at``, or never where that is absent."""

    attempt: int
    kind: FailureKind
    error: str
    seconds: float = 0.0
    retry_at: datetime | None = None


class Snoozed(OccurrenceEvent, topic="occurrence.snoozed.1"):
    """The handler or a stopping worker gave it back until ``until``; this uses up no attempt."""

    attempt: int
    until: datetime


class Lost(OccurrenceEvent, topic="occurrence.lost.1"):
    """The attempt's lease ran out: whether its effect happened is not known."""

    attempt: int
    retry_at: datetime | None = None


class CancelRequested(OccurrenceEvent, topic="occurrence.cancel_requested.1"):
    """The running attempt is asked to stop, and none is to follow it.

    Its worker tells the handler (``run.cancelled``), and cancels it where that is possible.
    """

    cause: SkipCause = "cancelled"


class Stopped(OccurrenceEvent, topic="occurrence.stopped.1"):
    """The attempt stopped because it was asked to, after ``seconds``."""

    attempt: int
    cause: SkipCause
    seconds: float = 0.0


class Recalled(OccurrenceEvent, topic="occurrence.recalled.1"):
    """The job changed before the run began: the message is void and the claim is made anew."""

    at: datetime


class Skipped(OccurrenceEvent, topic="occurrence.skipped.1"):
    """It will not run, and ``cause`` says why."""

    cause: SkipCause


class DeadLettered(OccurrenceEvent, topic="occurrence.dead_lettered.1"):
    """Nobody will try it again by themselves; it is ``owner``'s to look at."""

    cause: DeathCause
    owner: str | None = None
    kind: FailureKind | None = None
    error: str = ""


class Replayed(OccurrenceEvent, topic="occurrence.replayed.1"):
    """A person's order to try it again, under the same key, with a fresh budget of attempts."""

    at: datetime


class Discarded(OccurrenceEvent, topic="occurrence.discarded.1"):
    """A person's word that a dead letter needs no further try."""
