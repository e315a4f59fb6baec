"""Registering jobs: one at a time, or many in bounded batches; repeatable where there is a key.

A key's job has an id computed from it, so two clients that register the same key at once meet in
the log: one is accepted, the other finds the job and compares. The answer to a client that asks
again, because the first answer was lost, is the job that it had registered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

from horolog.application.commands.changing import append_change, recalled
from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.commands.defining import checked_key, checked_schedule, define
from horolog.application.commands.differing import differing_fields
from horolog.application.commands.job_spec import JobSpec
from horolog.application.decision import Decision, decide_on_job
from horolog.domain.errors import HorologError, InvalidPolicy, KeyConflict
from horolog.domain.ids import drawn_job_id, keyed_job_id
from horolog.domain.job import (
    POLICIES,
    JobState,
    decide_registration,
    decide_reschedule,
    decide_update,
)
from horolog.domain.job_events import JobEvent

MAX_BATCH = 10_000
_DRAWN_BYTES = 16
_FIXED = frozenset({"name", "concurrency_key"})


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A job that is about to be born, unless its key is taken."""

    spec: JobSpec
    decision: Decision
    state: JobState


def register(context: Context, spec: JobSpec) -> JobState:
    """The job of ``spec``: a new one, or the one that its key has.

    Raises ``InvalidSchedule``, ``InvalidPayload``, ``InvalidPolicy``; ``KeyConflict`` where the key
    belongs to a job with another definition and ``spec.replace`` is not set.
    """
    if spec.key is None:
        born = _born(context, spec, None)
        context.log.append([born.decision])
        return born.state
    job_id = keyed_job_id(context.namespace, checked_key(spec.key))
    for _ in range(MAX_TRIES):
        present = context.states.job(job_id)
        if present is not None:
            settled = _settled(context, spec, present)
        else:
            born = _born(context, spec, job_id)
            settled = born.state if context.accepts(born.decision) else None
        if settled is not None:
            return settled
    raise too_busy(f"key {spec.key!r}")


def register_many(
    context: Context, specs: Iterable[JobSpec], *, batch: int = 1000
) -> Iterator[JobState]:
    """The jobs of ``specs``, in order and lazily, one transaction for each ``batch`` of them.

    What one spec is refused for is raised, with its index in the message, before anything of its
    batch is written; the batches before it stay.
    """
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidPolicy(f"batch={batch}: a batch holds from 1 to {MAX_BATCH} jobs")
    remaining = iter(specs)
    first_index = 0
    while chunk := list(islice(remaining, batch)):
        yield from _register_batch(context, chunk, first_index)
        first_index += len(chunk)


def _register_batch(
    context: Context, specs: Sequence[JobSpec], first_index: int
) -> Iterator[JobState]:
    keyed = _keyed_ids(context, specs, first_index)
    present = context.states.jobs([job_id for job_id in keyed if job_id is not None])
    born: dict[int, _Candidate] = {}
    of_key: dict[UUID, JobState] = {}
    again: list[int] = []
    for number, (spec, job_id) in enumerate(zip(specs, keyed, strict=True)):
        try:
            meets = None if job_id is None else present.get(job_id) or of_key.get(job_id)
            if meets is not None:
                _replacement(context, spec, meets)
                again.append(number)
                continue
            born[number] = _born(context, spec, job_id)
            if job_id is not None:
                of_key[job_id] = born[number].state
        except HorologError as error:
            raise _at(first_index + number, error) from error
    states = _append_born(context, born)
    for number in again:
        states[number] = register(context, specs[number])
    yield from (states[number] for number in range(len(specs)))


def _keyed_ids(context: Context, specs: Sequence[JobSpec], first_index: int) -> list[UUID | None]:
    ids: list[UUID | None] = []
    for index, spec in enumerate(specs, first_index):
        try:
            key = None if spec.key is None else checked_key(spec.key)
        except HorologError as error:
            raise _at(index, error) from error
        ids.append(None if key is None else keyed_job_id(context.namespace, key))
    return ids


def _append_born(context: Context, born: dict[int, _Candidate]) -> dict[int, JobState]:
    """Appends the new jobs in one transaction; whoever lost a race for a key meets the winner."""
    states = {number: candidate.state for number, candidate in born.items()}
    if born:
        appended = context.log.append([candidate.decision for candidate in born.values()])
        for (number, candidate), verdict in zip(born.items(), appended.verdicts, strict=True):
            if verdict != "accepted":
                states[number] = register(context, candidate.spec)
    return states


def _born(context: Context, spec: JobSpec, job_id: UUID | None) -> _Candidate:
    now = context.clock.now()
    job_id = job_id or drawn_job_id(now, context.entropy.draw(_DRAWN_BYTES))
    definition = define(spec, job_id, now)
    events = decide_registration(
        definition,
        partition=context.partition(job_id, definition.concurrency_key),
        key=spec.key,
        now=now,
        origin=context.origin(spec.reason),
    )
    decision, state = decide_on_job(None, job_id, events)
    return _Candidate(spec, decision, state)


def _settled(context: Context, spec: JobSpec, present: JobState) -> JobState | None:
    """The job that has the key, changed where ``replace`` asks for it; ``None``: decide anew."""
    events = _replacement(context, spec, present)
    return append_change(context, present, events, recalled(context)) if events else present


def _replacement(context: Context, spec: JobSpec, present: JobState) -> list[JobEvent]:
    """The events that make ``present`` what ``spec`` says, or ``KeyConflict``."""
    now = context.clock.now()
    wanted = define(spec, present.id, now)
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


def _at(index: int, error: HorologError) -> HorologError:
    """The same refusal, with the index of the spec in front."""
    return type(error)(f"spec {index}: {error}")
