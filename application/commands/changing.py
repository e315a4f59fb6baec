"""Changing a job: another schedule, other values, a pause, its end.

A change decides on the job and, in the same append, on those of its occurrences which it concerns,
so that no claim in flight runs the job as it was: an update recalls claims whose run has not begun
(they are made anew, with the new payload), a cancellation skips what has not begun and asks to stop
what runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from horolog.application.commands.context import MAX_TRIES, Context, too_busy
from horolog.application.commands.defining import (
    checked_payload,
    checked_policies,
    checked_schedule,
)
from horolog.application.decision import add_to_occurrence, decide_on_job, decide_on_occurrence
from horolog.application.privacy.payloads import sealed_payload
from horolog.domain.errors import UnknownJob
from horolog.domain.job import (
    JobState,
    decide_cancel,
    decide_pause,
    decide_reschedule,
    decide_resume,
    decide_update,
    expect_version,
)
from horolog.domain.job_events import JobEvent
from horolog.domain.occurrence import OccurrenceState, decide_recall
from horolog.domain.occurrence import decide_cancel as decide_cancel_run
from horolog.domain.occurrence_events import OccurrenceEvent
from horolog.domain.schedule import Schedule

DecideJob = Callable[[JobState], Sequence[JobEvent]]
DecideOccurrence = Callable[[OccurrenceState], Sequence[OccurrenceEvent]]

PAGE = 500
"""The most occurrences that one append decides on beside the job."""


def reschedule(
    context: Context,
    job_id: UUID,
    schedule: Schedule,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
) -> JobState:
    """From now on only the new schedule fires; what was claimed before still runs."""
    origin = context.origin(reason)
    checked = checked_schedule(schedule)

    def decide(job: JobState) -> list[JobEvent]:
        now = context.clock.now()
        return decide_reschedule(job, checked.anchored(now, str(job_id)), now=now, origin=origin)

    return change(context, job_id, decide, expected_version)


def update(
    context: Context,
    job_id: UUID,
    *,
    payload: Mapping[str, Any] | None,
    policies: Mapping[str, Any],
    expected_version: int | None = None,
    reason: str | None = None,
) -> JobState:
    """Another payload, other policies; claims whose run has not begun are made anew with them."""
    origin = context.origin(reason)
    new_payload = None if payload is None else checked_payload(payload)
    new_policies = checked_policies(policies)

    def decide(job: JobState) -> list[JobEvent]:
        subject, wanted = job.definition.subject, new_payload
        if subject is not None and wanted is not None and job.status != "cancelled":
            present = job.definition.payload
            wanted = sealed_payload(context.keyring, subject, job.id, wanted, present)
        return decide_update(job, payload=wanted, policies=new_policies, origin=origin)

    return change(context, job_id, decide, expected_version, recalled(context))


def pause(
    context: Context,
    job_id: UUID,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
) -> JobState:
    """No fire time is claimed until the job is resumed; what was claimed before still runs."""
    origin = context.origin(reason)
    return change(context, job_id, lambda job: decide_pause(job, origin=origin), expected_version)


def resume(
    context: Context,
    job_id: UUID,
    *,
    catch_up: bool = False,
    expected_version: int | None = None,
    reason: str | None = None,
) -> JobState:
    """The schedule goes on; the fire times of the pause are dropped unless ``catch_up`` is set."""
    origin = context.origin(reason)

    def decide(job: JobState) -> list[JobEvent]:
        return decide_resume(job, now=context.clock.now(), origin=origin, catch_up=catch_up)

    return change(context, job_id, decide, expected_version)


def cancel(
    context: Context,
    job_id: UUID,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
) -> JobState:
    """The job never fires again, and what has not begun does not run. Runs that have begun are
    asked to stop, and end in whatever way they do: a success is one."""
    origin = context.origin(reason)

    def stop(occurrence: OccurrenceState) -> list[OccurrenceEvent]:
        return decide_cancel_run(occurrence, "cancelled", origin=origin)

    def decide(job: JobState) -> list[JobEvent]:
        return decide_cancel(job, origin=origin)

    state = change(context, job_id, decide, expected_version, stop)
    for _ in range(MAX_TRIES):
        if not _decide_on_all(context, job_id, stop):
            return state
    raise too_busy(f"an occurrence of job {job_id}")


def recalled(context: Context) -> DecideOccurrence:
    """The decision to make claims anew whose run has not begun."""
    origin = context.origin("the job was changed")

    def recall(occurrence: OccurrenceState) -> list[OccurrenceEvent]:
        return decide_recall(occurrence, now=context.clock.now(), origin=origin)

    return recall


def change(
    context: Context,
    job_id: UUID,
    decide: DecideJob,
    expected_version: int | None = None,
    on_occurrences: DecideOccurrence | None = None,
) -> JobState:
    """Reads, decides and appends until the log accepts; no events means that it is so already.

    Raises ``UnknownJob``, ``VersionConflict`` where the job is not at ``expected_version``, and
    what ``decide`` raises.
    """
    for tries in range(MAX_TRIES):
        before = known_job(context, job_id)
        expect_version(before, expected_version)
        events = decide(before)
        if not events:
            return before
        after = append_change(
            context, before, events, on_occurrences, most=PAGE if tries == 0 else PAGE >> tries
        )
        if after is not None:
            return after
    raise too_busy(f"job {job_id}")


def append_change(
    context: Context,
    before: JobState,
    events: Sequence[JobEvent],
    on_occurrences: DecideOccurrence | None = None,
    *,
    most: int = PAGE,
) -> JobState | None:
    """Appends the job's events and what follows for ``most`` of its occurrences, all or nothing.

    ``None`` where the job or one of those occurrences moved on meanwhile. The caller then asks for
    fewer, so that a job whose runs begin and end all the time can be changed in the end. What is
    beyond ``most`` is decided one by one afterwards.
    """
    decision, after = decide_on_job(before, before.id, events)
    unfinished = [] if on_occurrences is None else context.states.unfinished(before.id, limit=PAGE)
    for occurrence in unfinished[:most]:
        assert on_occurrences is not None
        if its_events := on_occurrences(occurrence):
            add_to_occurrence(decision, occurrence, its_events)
    if context.accepts(decision) is None:
        return None
    if on_occurrences is not None and (len(unfinished) == PAGE or most < PAGE):
        _decide_on_all(context, before.id, on_occurrences)
    return after


def known_job(context: Context, job_id: UUID) -> JobState:
    """The job as it is now, or ``UnknownJob``."""
    state = context.states.job(job_id)
    if state is None and context.settle is not None and context.settle(job_id):
        state = context.states.job(job_id)
    if state is None:
        raise UnknownJob(f"no job has the id {job_id} in namespace {context.namespace!r}")
    return state


def _decide_on_all(context: Context, job_id: UUID, decide: DecideOccurrence) -> int:
    """Goes once through the unfinished occurrences, each for itself; how many it was for."""
    concerned = 0
    for page in _pages(context, job_id):
        decisions = [
            decide_on_occurrence(occurrence, events)[0]
            for occurrence in page
            if (events := decide(occurrence))
        ]
        if decisions:
            context.log.append(decisions)
            concerned += len(decisions)
    return concerned


def _pages(context: Context, job_id: UUID) -> Iterator[list[OccurrenceState]]:
    last: UUID | None = None
    while page := context.states.unfinished(job_id, after=last, limit=PAGE):
        yield page
        if len(page) < PAGE:
            return
        last = page[-1].id
