"""The causal story of an occurrence, told from the log: from the job's registration to the outcome.

Each step is an event or follows from one. What brought the occurrence about is in other streams:
the job's registration and its last change, the order of an extra run, the election of the leader.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.answers.explanation import Explanation, Step
from horolog.application.answers.occurrence import Occurrence
from horolog.application.answers.schedule_words import schedule_words
from horolog.application.log import Recorded
from horolog.application.queries.audit_ports import ReadsStreams
from horolog.application.queries.telling import moment, told
from horolog.domain.ids import partition_stream
from horolog.domain.job_events import (
    DEFINING,
    BackfillRequested,
    JobEvent,
    Registered,
    Resumed,
    Triggered,
)
from horolog.domain.occurrence_events import Claimed
from horolog.domain.orders import backfilled_id
from horolog.domain.partition import Elected

MOST = 10_000
"""Events of one occurrence that are told; a longer life is told up to there."""
_CHANGING = [event.topic for event in (*DEFINING, Resumed)]


class ReadsStream(Protocol):
    """A part of :class:`horolog.application.log.ReadsLog`."""

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]: ...


class Explaining:
    """Tells the story of occurrences of one namespace."""

    def __init__(self, log: ReadsStream, streams: ReadsStreams, namespace: str) -> None:
        self._log = log
        self._streams = streams
        self._namespace = namespace

    def explain(self, occurrence: Occurrence) -> Explanation:
        events = self._log.stream(occurrence.id, limit=MOST)
        first = events[0] if events else None
        changes = self._changes(occurrence, first)
        steps = [
            *self._of_the_job(changes, first),
            *self._of_the_order(occurrence, first),
            *self._of_the_occurrence(occurrence, events),
        ]
        steps.sort(key=lambda step: step.at)
        registered = changes[0].event if changes else None
        name = registered.definition.name if isinstance(registered, Registered) else ""
        last = events[-1].recorded_at if events else None
        return Explanation(
            occurrence_id=occurrence.id,
            job_id=occurrence.job_id,
            name=name,
            state=occurrence.state,
            steps=tuple(_timed(steps)),
            outlook=_outlook(occurrence),
            seconds=None if last is None else (last - occurrence.fire_time).total_seconds(),
        )

    def _changes(self, occurrence: Occurrence, first: Recorded | None) -> list[Recorded]:
        """What defined the job, up to the occurrence's first claim."""
        changes = self._streams.of_topics(occurrence.job_id, _CHANGING, limit=MOST)
        if first is None:
            return changes
        return [change for change in changes if change.position < first.position]

    def _of_the_job(self, changes: Sequence[Recorded], first: Recorded | None) -> Iterator[Step]:
        if not changes:
            return
        registered = changes[0].event
        assert isinstance(registered, Registered)
        by, key = registered.actor or "somebody", ""
        if registered.key:
            key = f" under the key {registered.key!r}"
        yield _step(
            changes[0],
            f"{by} registered the job {registered.definition.name}{key}:"
            f" {schedule_words(registered.definition.schedule)}{_why(registered)}",
        )
        if len(changes) > 1:
            last = changes[-1]
            what = last.event.topic.split(".")[1].replace("_", " ")
            before = "" if first is None else ", the last time before this run"
            yield _step(
                last,
                f"{last.event.actor or 'somebody'} changed the job{before}:"
                f" {what} (version {last.version}){_why(last.event)}",
            )

    def _of_the_order(self, occurrence: Occurrence, first: Recorded | None) -> Iterator[Step]:
        order = self._order(occurrence)
        if order is not None:
            yield _step(order, _ordering(order.event) + _why(order.event))
        due = first.event.due if first and isinstance(first.event, Claimed) else None
        fire = moment(occurrence.fire_time)
        match occurrence.kind:
            case "schedule":
                what = f"its fire time came, {fire}: the job's schedule says so"
            case "trigger":
                what = f"the time came for which it was ordered, {fire}"
            case "backfill":
                what = f"its fire time passed, {fire}; nothing was run then"
        yield Step(at=occurrence.fire_time, what=what)
        if due is not None and due != occurrence.fire_time:
            spread = "by the order's pace" if occurrence.kind == "backfill" else "by its jitter"
            yield Step(at=due, what=f"it was meant to begin now, {spread}")

    def _order(self, occurrence: Occurrence) -> Recorded | None:
        match occurrence.kind:
            case "schedule":
                return None
            case "trigger":
                return self._streams.order_of(occurrence.id)
            case "backfill":
                orders = self._streams.of_topics(
                    occurrence.job_id, [BackfillRequested.topic], limit=MOST
                )
                return next((one for one in orders if _orders(one, occurrence)), None)

    def _of_the_occurrence(
        self, occurrence: Occurrence, events: Sequence[Recorded]
    ) -> Iterator[Step]:
        due: datetime | None = occurrence.fire_time if occurrence.kind != "backfill" else None
        for recorded in events:
            event = recorded.event
            what = told(event, recorded.recorded_at)
            if isinstance(event, Claimed):
                due = event.due or due
                if due is not None:
                    late = (recorded.recorded_at - due).total_seconds()
                    what += f", {late:.3f} s after it was due"
                yield from self._election(event)
            yield _step(recorded, what)
            due = _due_after(recorded)

    def _election(self, claim: Claimed) -> Iterator[Step]:
        """How the leader had come to its token; told once, at the first claim."""
        if claim.attempt > 1:
            return
        stream = partition_stream(self._namespace, claim.partition)
        for elected in self._log.stream(stream, after=claim.token - 1, limit=1):
            if isinstance(elected.event, Elected) and elected.version == claim.token:
                yield _step(
                    elected,
                    f"{elected.event.instance} was elected leader of partition {claim.partition}:"
                    f" fencing token {claim.token}",
                )


def _orders(recorded: Recorded, occurrence: Occurrence) -> bool:
    event = recorded.event
    assert isinstance(event, BackfillRequested)
    return any(
        backfilled_id(occurrence.job_id, fire, event.salt) == occurrence.id for fire in event.fires
    )


def _ordering(event: object) -> str:
    assert isinstance(event, JobEvent)
    by = event.actor or "somebody"
    if isinstance(event, Triggered):
        request = f" (request {event.request_id!r})" if event.request_id else ""
        return f"{by} ordered one extra run for {moment(event.fire_time)}{request}"
    assert isinstance(event, BackfillRequested)
    return (
        f"{by} ordered runs for {len(event.fires)} fire times"
        f" from {moment(event.start)} to {moment(event.end)}"
    )


def _due_after(recorded: Recorded) -> datetime | None:
    """When the next claim is due, as this event says."""
    for name in ("retry_at", "until", "at"):
        if isinstance(found := getattr(recorded.event, name, None), datetime):
            return found
    return None


def _outlook(occurrence: Occurrence) -> str:
    due = "" if occurrence.due_at is None else moment(occurrence.due_at)
    match occurrence.state:
        case "scheduled":
            return f"nobody has claimed it yet; it is due at {due}"
        case "claimed":
            return (
                "its message goes by way of the ready queue, and no worker has begun it yet;"
                f" the leader looks again at {due}"
            )
        case "running":
            return f"it runs; without a sign of its worker it is given up at {due}"
        case "stopping":
            return f"it was asked to stop; without a sign of its worker it is given up at {due}"
        case "retrying":
            return f"it waits for its next try, due at {due}"
        case "dead":
            return "nobody will try it again by themselves: replay or discard it"
        case _:
            return ""


def _why(event: object) -> str:
    reason = getattr(event, "reason", None)
    return f", because {reason!r}" if reason else ""


def _step(recorded: Recorded, what: str) -> Step:
    return Step(
        at=recorded.recorded_at,
        what=what,
        actor=recorded.event.actor or None,
        event=f"{recorded.stream}:{recorded.version}",
        position=recorded.position,
    )


def _timed(steps: Sequence[Step]) -> Iterator[Step]:
    before: datetime | None = None
    for step in steps:
        yield step if before is None else replace(step, after_s=(step.at - before).total_seconds())
        before = step.at
