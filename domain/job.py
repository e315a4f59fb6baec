"""A job: what it is now, and what may be done to it.

``evolve`` folds events into a state; the ``decide_*`` functions answer a command with events, with
none where what is asked for is already so, or with a named error. Nothing here knows the time: it
is an argument.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from pydantic import ValidationError

from horolog.domain.definition import JobDefinition
from horolog.domain.due_fires import skipped_until
from horolog.domain.errors import InvalidPolicy, InvalidSchedule, NotAllowed, VersionConflict
from horolog.domain.event import Event
from horolog.domain.ids import occurrence_id
from horolog.domain.job_events import (
    BackfillRequested,
    Cancelled,
    Completed,
    FiresSkipped,
    JobEvent,
    Paused,
    PayloadChanged,
    PoliciesChanged,
    Registered,
    Rescheduled,
    Resumed,
    SkipCause,
    Triggered,
    ZoneDataChanged,
)
from horolog.domain.origin import Origin
from horolog.domain.record import record
from horolog.domain.schedule import Once, Schedule, tzdata_version

JobStatus = Literal["active", "paused", "completed", "cancelled"]

POLICIES = frozenset(JobDefinition.model_fields) - {"name", "schedule", "payload", "subject"}
"""The fields of a definition that ``update`` may change one by one."""


@record
class JobState:
    """A job as the log has it at ``version``.

    ``next_fire`` is the nominal next fire time (UTC) and ``fires`` how many the schedule has used
    up, run or dropped; both move with the claims of the job's occurrences, which are in other
    streams. While the job is paused, ``next_fire`` is the first fire time that the pause holds.
    """

    id: UUID
    version: int
    status: JobStatus
    partition: int
    definition: JobDefinition
    key: str | None = None
    next_fire: datetime | None = None
    fires: int = 0


def evolve(state: JobState | None, job_id: UUID, event: Event) -> JobState:
    """The state after ``event``, which is the next one in the job's stream."""
    if type(event) is Registered:
        return JobState(
            job_id, 1, "active", event.partition, event.definition, event.key, event.next_fire
        )
    assert state is not None, f"job {job_id} begins with {event.topic}"
    definition, status = state.definition, state.status
    next_fire, fires = state.next_fire, state.fires
    if type(event) is Completed:
        # With every one-off: apart from the others, because a class pattern costs far more.
        return JobState(
            job_id,
            state.version + 1,
            "completed",
            state.partition,
            definition,
            state.key,
            None,
            fires,
        )
    match event:
        case FiresSkipped():
            next_fire, fires = event.next_fire, event.fires
        case Rescheduled():
            definition = definition.model_copy(update={"schedule": event.schedule})
            status = "active" if status == "completed" else status
            next_fire, fires = event.next_fire, 0
        case PayloadChanged():
            definition = definition.model_copy(update={"payload": event.payload})
        case PoliciesChanged():
            definition = _changed(definition, event.changes)
        case Paused():
            status = "paused"
        case Resumed():
            status, next_fire = "active", event.next_fire
        case ZoneDataChanged():
            next_fire = event.next_fire
        case Cancelled():
            status, next_fire = "cancelled", None
        case Triggered() | BackfillRequested():
            pass
        case _:
            raise AssertionError(f"{event.topic} is no event of a job")
    return JobState(
        job_id,
        state.version + 1,
        status,
        state.partition,
        definition,
        state.key,
        next_fire,
        fires,
    )


def fold(job_id: UUID, events: Iterable[Event]) -> JobState | None:
    """The state after all of a job's own events; ``None`` if there are none."""
    state: JobState | None = None
    for event in events:
        state = evolve(state, job_id, event)
    return state


def advance(state: JobState, next_fire: datetime | None, fires: int) -> JobState:
    """The state after the claim of one of the schedule's fire times, which moved the job on."""
    # Written out, being part of every claim: ``dataclasses.replace`` takes several times as long.
    return JobState(
        state.id,
        state.version,
        state.status,
        state.partition,
        state.definition,
        state.key,
        next_fire,
        fires,
    )


ONE_OFF_GRACE = timedelta(seconds=60)
"""How far in the past a one-off may lie and still run, at once: clocks differ, requests travel."""


def first_fire(schedule: Schedule, now: datetime) -> datetime | None:
    """The fire time that a schedule which starts now begins with; ``None`` if it has none left."""
    fire = schedule.next_after(now - ONE_OFF_GRACE if isinstance(schedule, Once) else now)
    return None if fire is None else fire.at


def decide_registration(
    definition: JobDefinition,
    *,
    partition: int,
    key: str | None,
    now: datetime,
    origin: Origin,
    first: datetime | None = None,
) -> list[Registered]:
    """The birth of a job; ``InvalidSchedule`` where its schedule has no fire time from now on.

    ``first`` is what :func:`required_fire` says, where it was asked already.
    """
    registered = Registered(
        definition=definition,
        partition=partition,
        key=key,
        next_fire=first or required_fire(definition.parsed_schedule(), now),
        tzdata=tzdata_version(),
        **origin.fields(),
    )
    return [registered]


def decide_reschedule(
    state: JobState, schedule: Schedule, *, now: datetime, origin: Origin
) -> list[JobEvent]:
    """Another schedule; a completed job becomes active again, a paused one stays paused.

    Fire times of the old one that were due and not claimed yet do not run, and the log says so.
    """
    refuse_if(state, {"cancelled"}, "reschedule")
    stored = schedule.to_json()
    if stored == state.definition.schedule and state.status != "completed":
        return []
    fire = required_fire(schedule, now)
    events: list[JobEvent] = []
    if state.next_fire is not None:
        cause: SkipCause = "paused" if state.status == "paused" else "superseded"
        old = state.definition.parsed_schedule()
        left = skipped_until(old, state.next_fire, state.fires, now, cause)
        events += [] if left is None else [left.event(origin)]
    version = tzdata_version()
    events.append(Rescheduled(schedule=stored, next_fire=fire, tzdata=version, **origin.fields()))
    return events


def decide_update(
    state: JobState, *, payload: dict[str, Any] | None, policies: dict[str, Any], origin: Origin
) -> list[JobEvent]:
    """New values; what equals the present value is no change and leaves no event."""
    refuse_if(state, {"cancelled"}, "update")
    events: list[JobEvent] = []
    if payload is not None and payload != state.definition.payload:
        events.append(PayloadChanged(payload=payload, **origin.fields()))
    if unknown := policies.keys() - POLICIES:
        names = ", ".join(sorted(POLICIES))
        raise InvalidPolicy(f"a job has no policy {sorted(unknown)}; it has: {names}")
    if (
        "concurrency_key" in policies
        and policies["concurrency_key"] != state.definition.concurrency_key
    ):
        raise InvalidPolicy(
            "the concurrency key decides the job's partition and is fixed at registration;"
            " cancel this job and register another"
        )
    present = state.definition.model_dump(mode="json")
    wanted = _changed(state.definition, policies).model_dump(mode="json")
    changes = {name: wanted[name] for name in policies if wanted[name] != present[name]}
    if changes:
        events.append(PoliciesChanged(changes=changes, **origin.fields()))
    return events


def decide_pause(state: JobState, *, origin: Origin) -> list[JobEvent]:
    refuse_if(state, {"cancelled", "completed"}, "pause")
    return [] if state.status == "paused" else [Paused(**origin.fields())]


def decide_resume(
    state: JobState, *, now: datetime, origin: Origin, catch_up: bool = False
) -> list[JobEvent]:
    """The schedule goes on; what the pause held back is dropped, and the log says so.

    With ``catch_up`` the job goes on at the first fire time that was held back, and its catch-up
    policy decides what of the pause still runs.
    """
    refuse_if(state, {"cancelled", "completed"}, "resume")
    if state.status == "active":
        return []
    events: list[JobEvent] = []
    next_fire = state.next_fire
    if next_fire is not None and not catch_up:
        schedule = state.definition.parsed_schedule()
        held = skipped_until(schedule, next_fire, state.fires, now, "paused")
        if held is not None:
            events.append(held.event(origin))
            next_fire = held.next_fire
    events.append(Resumed(next_fire=next_fire, tzdata=tzdata_version(), **origin.fields()))
    if next_fire is None:
        events.append(Completed(**origin.fields()))
    return events


def decide_cancel(state: JobState, *, origin: Origin) -> list[JobEvent]:
    return [] if state.status == "cancelled" else [Cancelled(**origin.fields())]


def decide_trigger(
    state: JobState, *, at: datetime, request_id: str | None, salt: str, origin: Origin
) -> list[Triggered]:
    """One extra run; ``salt`` tells it apart from others of the same instant."""
    refuse_if(state, {"cancelled"}, "trigger")
    identity = occurrence_id(state.id, at, "trigger", salt)
    return [
        Triggered(occurrence_id=identity, fire_time=at, request_id=request_id, **origin.fields())
    ]


def expect_version(state: JobState, expected: int | None) -> None:
    """Raises ``VersionConflict`` unless the job is at the version that the caller decided on."""
    if expected is not None and expected != state.version:
        raise VersionConflict(
            f"job {state.id} is at version {state.version}, not at {expected}:"
            " read it again and decide anew",
            seen=expected,
            current=state.version,
        )


def refuse_if(state: JobState, statuses: set[JobStatus], command: str) -> None:
    """Raises ``NotAllowed`` where the job's status is one of ``statuses``."""
    if state.status in statuses:
        raise NotAllowed(f"cannot {command} job {state.id}: it is {state.status}")


def required_fire(schedule: Schedule, now: datetime) -> datetime:
    """The first fire time from now on; ``InvalidSchedule`` where there is none."""
    fire = first_fire(schedule, now)
    if fire is None:
        raise InvalidSchedule(
            f"{_shown(schedule)} has no fire time after {now.isoformat()}:"
            " give a time that lies ahead, or trigger a run at once"
        )
    return fire


def _shown(schedule: Schedule) -> str:
    """A schedule as a message names it: what was stated, without what is a default."""
    stated = schedule.model_dump(mode="json").items()
    words = ", ".join(f"{name}={value!r}" for name, value in stated if name != "kind")
    return f"{type(schedule).__name__}({words})"


def _changed(definition: JobDefinition, changes: dict[str, Any]) -> JobDefinition:
    values = definition.model_dump(mode="json") | {
        name: value.model_dump(mode="json") if hasattr(value, "model_dump") else value
        for name, value in changes.items()
    }
    try:
        return JobDefinition.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InvalidPolicy(f"{field}={first['input']!r}: {first['msg']}") from error
    except TypeError as error:  # a retry policy given as a mapping with a name that it has not
        raise InvalidPolicy(f"{', '.join(changes)}: {error}") from error
