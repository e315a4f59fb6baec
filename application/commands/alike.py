"""What many jobs of one command share, worked out once for all of them.

Most jobs of a batch differ from one another in payload, key and schedule, and many not even in
that. What the others have in common is checked once, its JSON is written once, and a cron
expression asked for its first fire time once: all by the same functions as a single job, whose
answers are kept here. A test holds what comes of it to what each job gives by itself, byte by byte.
"""

from collections.abc import Hashable
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Final
from uuid import UUID

from pydantic_core import to_json

from horolog.application.commands.defining import checked_rest, checked_schedule, written_payload
from horolog.application.commands.job_spec import JobSpec
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import EPOCH
from horolog.domain.job import required_fire
from horolog.domain.job_events import Registered
from horolog.domain.json_form import JsonForm
from horolog.domain.record import record
from horolog.domain.retry import Retry
from horolog.domain.schedule import Cron, Every, Schedule

MOST_KEPT = 1_000
"""How many definitions and forms are remembered; whoever states more is forgotten as a whole."""

_OWN: Final = {"schedule", "payload", "key", "retry", "labels", "subject", "reason", "replace"}
"""What of a spec is no part of the rest of its definition, or is compared in a way of its own."""

_rest: Final = attrgetter(*[each.name for each in fields(JobSpec) if each.name not in _OWN])


class Plan:
    """A schedule as a batch registers it, its JSON form, and its first fire time after ``now``."""

    __slots__ = ("_first", "_now", "_stated", "first_json", "schedule", "stored", "written")

    def __init__(self, stated: Schedule, schedule: Schedule, now: datetime) -> None:
        self._stated = stated
        self._now = now
        self._first: datetime | None = None
        self.first_json = b""
        self.schedule = schedule
        self.stored = schedule.to_json()
        self.written = to_json(self.stored)

    def first_fire(self) -> datetime:
        """As :func:`required_fire`, which is asked once."""
        if self._first is None:
            self._first = required_fire(self.schedule, self._now)
            self.first_json = to_json(self._first)
        return self._first


class Rest:
    """What definitions state beside schedule and payload, and how those that state it are written:
    with a payload, and without."""

    __slots__ = ("_forms", "stated")

    def __init__(self, stated: JobDefinition) -> None:
        self.stated = stated
        self._forms: dict[bool, JsonForm] = {}

    def written(self, definition: JobDefinition, plan: Plan, payload: bytes) -> bytes:
        """What the definition's ``to_json`` would say."""
        # An empty payload is the default, which is left out.
        values = [("schedule", plan.written), ("payload", payload)][: 1 + bool(definition.payload)]
        form = self._forms.get(bool(definition.payload))
        if form is not None:
            return form.filled(*(value for _, value in values))
        written = definition.to_json().encode()
        self._forms[bool(definition.payload)] = JsonForm(written, values)
        return written


@record
class Defined:
    """A definition, its JSON, and the plan of its schedule."""

    definition: JobDefinition
    written: bytes
    plan: Plan


class Alike:
    """One command's memory; ``begin`` is called before each batch, whose one time is ``now``."""

    def __init__(self) -> None:
        self.now = EPOCH  # until the first batch begins
        self._rests: dict[Hashable, Rest] = {}
        self._events: dict[Hashable, JsonForm] = {}
        self._plans: dict[Hashable, Plan] = {}

    def begin(self, now: datetime) -> None:
        self.now = now
        self._plans.clear()
        for kept in (self._rests, self._events):
            if len(kept) > MOST_KEPT:
                kept.clear()

    def defined(self, spec: JobSpec, job_id: UUID) -> Defined | None:
        """What ``define`` would say; ``None`` for a job with a subject, whose payload is sealed.

        Raises what ``define`` raises, in the same order.
        """
        if spec.subject is not None:
            return None
        plan = self._plan(checked_schedule(spec.schedule), job_id)
        payload, payload_json = written_payload(spec.payload)
        rest = self._rest(spec)
        definition = rest.stated.alike(plan.schedule, plan.stored, payload)
        return Defined(definition, rest.written(definition, plan, payload_json), plan)

    def written(self, defined: Defined, event: Registered) -> bytes:
        """What the event's ``to_json`` would say."""
        assert event.next_fire is not None
        values = [
            ("correlation", b'"%b"' % str(event.correlation).encode()),
            ("definition", defined.written),
            ("partition", b"%d" % event.partition),
            ("next_fire", defined.plan.first_json),
        ]
        if event.key is not None:
            values.insert(3, ("key", to_json(event.key)))
        kind = (event.actor, event.reason, event.traceparent, event.tzdata, event.key is None)
        form = self._events.get(kind)
        if form is not None:
            return form.filled(*(value for _, value in values))
        written = event.to_json()
        self._events[kind] = JsonForm(written, values)
        return written

    def _plan(self, stated: Schedule, job_id: UUID) -> Plan:
        kind = _kind_of_schedule(stated)
        plan = self._plans.get(kind)
        if plan is None:
            schedule = stated.anchored(self.now)
            if schedule.anchored(self.now, "") is not schedule:
                # A part of it is drawn from the job's own id, so no other job has the same.
                return Plan(stated, stated.anchored(self.now, str(job_id)), self.now)
            plan = self._plans[kind] = Plan(stated, schedule, self.now)
        return plan

    def _rest(self, spec: JobSpec) -> Rest:
        kind = _kind_of_rest(spec)
        rest = None if kind is None else self._rests.get(kind)
        if rest is None:
            rest = Rest(checked_rest(spec))
            if kind is not None:
                self._rests[kind] = rest
        return rest


def _kind_of_schedule(stated: Schedule) -> Hashable:
    """The same for schedules that are written alike: by their values where those tell them apart,
    else by which object it is. (Its plan keeps the object, so that no other gets its number.)"""
    if isinstance(stated, Cron | Every) and not stated.exclude and stated.holidays is None:
        return (type(stated), *stated.__dict__.values())
    return id(stated)


def _kind_of_rest(spec: JobSpec) -> Hashable:
    """The same for specs that are checked alike; ``None`` for one that may be like no other.

    With the types, because ``1``, ``1.0`` and ``True`` are equal and not all of them are accepted.
    """
    retry, labels = spec.retry, spec.labels or {}
    if type(retry) is not Retry or not isinstance(labels, dict):
        return None
    values = _rest(spec)
    # The order of labels is that in which they are written.
    kind = (values, *map(type, values), id(retry), *labels.items())
    try:
        hash(kind)
    except TypeError:
        return None
    return kind
