"""Registering a job; repeatable where there is a key.

A key's job has an id computed from it, so two clients that register the same key at once meet in
the log: one is accepted, the other finds the job and compares. The answer to a client that asks
again, because the first answer was lost, is the job that it had registered.
"""

from uuid import UUID

from horolog.application.commands.alike import Alike
from horolog.application.commands.changing import append_change, recalled
from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.commands.defining import checked_key, checked_schedule, define
from horolog.application.commands.differing import differing_fields
from horolog.application.commands.job_spec import JobSpec
from horolog.application.decision import Decision, decide_on_birth, decide_on_job
from horolog.domain.errors import KeyConflict
from horolog.domain.ids import drawn_job_id, keyed_job_id
from horolog.domain.job import (
    POLICIES,
    JobState,
    decide_registration,
    decide_reschedule,
    decide_update,
)
from horolog.domain.job_events import JobEvent
from horolog.domain.record import record

_DRAWN_BYTES = 16
_FIXED = frozenset({"name", "concurrency_key", "subject"})


@record
class Candidate:
    """A job that is about to be born, unless its key is taken."""

    spec: JobSpec
    decision: Decision
    state: JobState


def register(context: Context, spec: JobSpec, *, drawn: UUID | None = None) -> JobState:
    """The job of ``spec``: a new one, or the one that its key has. ``drawn`` is the id of a job
    without a key, where it was drawn before.

    Raises ``InvalidSchedule``, ``InvalidPayload``, ``InvalidPolicy``; ``KeyConflict`` where the key
    belongs to a job with another definition and ``spec.replace`` is not set.
    """
    if spec.key is None:
        born = candidate(context, spec, drawn)
        context.log.append([born.decision])
        return born.state
    job_id = keyed_job_id(context.namespace, checked_key(spec.key))
    for _ in range(MAX_TRIES):
        present = context.states.job(job_id)
        if present is not None:
            settled = _settled(context, spec, present)
        else:
            born = candidate(context, spec, job_id)
            settled = born.state if context.accepts(born.decision) else None
        if settled is not None:
            return settled
    raise too_busy(f"key {spec.key!r}")


def candidate(
    context: Context, spec: JobSpec, job_id: UUID | None, alike: Alike | None = None
) -> Candidate:
    """The job of ``spec`` as it would be born; ``job_id`` is its key's, if it has one.

    ``alike`` has what it shares with those before it, and says what the time is.
    """
    now = context.clock.now() if alike is None else alike.now
    job_id = job_id or drawn_job_id(now, context.entropy.draw(_DRAWN_BYTES))
    shared = None if alike is None else alike.defined(spec, job_id)
    definition = define(spec, job_id, now, context.keyring) if shared is None else shared.definition
    [registered] = decide_registration(
        definition,
        partition=context.partition(job_id, definition.concurrency_key),
        key=spec.key,
        now=now,
        origin=context.origin(spec.reason),
        first=None if shared is None else shared.plan.first_fire(),
    )
    if alike is None or shared is None:
        return Candidate(spec, *decide_on_job(None, job_id, [registered]))
    written = alike.written(shared, registered)
    born = decide_on_birth(
        job_id, registered, event_json=written, definition_json=shared.written.decode()
    )
    return Candidate(spec, *born)


def _settled(context: Context, spec: JobSpec, present: JobState) -> JobState | None:
    """The job that has the key, changed where ``replace`` asks for it; ``None``: decide anew."""
    events = replacement(context, spec, present)
    return append_change(context, present, events, recalled(context)) if events else present


def replacement(context: Context, spec: JobSpec, present: JobState) -> list[JobEvent]:
    """The events that make ``present`` what ``spec`` says, or ``KeyConflict``."""
    now = context.clock.now()
    wanted = define(spec, present.id, now, context.keyring, present.definition)
    stated = checked_schedule(spec.schedule).to_json()
    differing = differing_fields(present.definition, wanted, stated)
    if not differing:
        return []
    if not spec.replace:
        raise KeyConflict(
            f"key {spec.key!r} belongs to job {present.id}, which differs in"
            f" {', '.join(differing)}: give replace=True to change that job, or use another key"
        )
    if fixed := sorted(_FIXED.intersection(differing)):
        raise KeyConflict(
            f"key {spec.key!r} belongs to job {present.id}, and its {', '.join(fixed)} cannot be"
            " replaced: cancel that job and register the new one under another key"
        )
    origin = context.origin(spec.reason)
    events: list[JobEvent] = []
    if "schedule" in differing:
        events += decide_reschedule(present, wanted.parsed_schedule(), now=now, origin=origin)
    policies = {name: getattr(wanted, name) for name in differing if name in POLICIES}
    payload = wanted.payload if "payload" in differing else None
    return events + decide_update(present, payload=payload, policies=policies, origin=origin)
