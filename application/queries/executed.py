"""A run as the audit shows it, from the events of its life; and whether a choice means it."""

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from horolog.application.answers.execution import Execution
from horolog.application.log import Recorded
from horolog.application.queries.audit_ports import ExecutionChoice, JobChoice
from horolog.domain.event import Event
from horolog.domain.ids import OccurrenceKind
from horolog.domain.occurrence import Phase
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    Failed,
    Lost,
    Stopped,
    Succeeded,
)
from horolog.projections.rows import Execution as Ended
from horolog.projections.rows import JobRow, NextRun


def execution_of(
    row: NextRun | Ended,
    job: JobRow,
    events: Sequence[Recorded],
    finished_at: datetime | None,
    *,
    archive: str | None = None,
) -> Execution:
    """``events`` are all of its life; ``archive`` the file that they were read from, if any."""
    claim = events[0] if events and isinstance(events[0].event, Claimed) else None
    tries = [one for one in events if isinstance(one.event, Attempted)]
    backwards = [one.event for one in reversed(events)]
    outcome = next((e for e in backwards if isinstance(e, Succeeded | Failed | Stopped)), None)
    failed = next((e for e in backwards if isinstance(e, Failed | Lost)), None)
    due = cast("Claimed", claim.event).due if claim else None
    return Execution(
        id=row.id,
        job_id=row.job_id,
        key=job.key,
        name=job.name,
        queue=job.queue,
        owner=job.owner,
        labels=job.labels,
        state=cast("Phase", row.state),
        kind=cast("OccurrenceKind", row.kind),
        fire_time=row.fire_time,
        due_at=due or row.fire_time,
        claimed_at=None if claim is None else claim.recorded_at,
        began_at=tries[0].recorded_at if tries else None,
        finished_at=finished_at,
        attempt=row.attempt,
        failures=row.failures,
        worker=tries[-1].event.actor if tries else None,
        seconds=outcome.seconds if outcome and outcome.attempt == row.attempt else None,
        failure=failure_of(failed),
        error=failed.error if isinstance(failed, Failed) else None,
        archive=archive,
    )


def is_wanted(
    one: Execution, job: JobRow, events: Sequence[Recorded], wanted: ExecutionChoice
) -> bool:
    moment = one.finished_at if wanted.by_end else one.fire_time
    said = [recorded.event for recorded in events]
    return (
        fits(job, wanted.jobs)
        and moment is not None
        and (wanted.since is None or moment >= wanted.since)
        and (wanted.until is None or moment < wanted.until)
        and wanted.state in (None, one.state)
        and wanted.kind in (None, one.kind)
        and (
            wanted.worker is None
            or any(isinstance(e, Attempted) and e.actor == wanted.worker for e in said)
        )
        and (wanted.failure is None or any(failure_of(e) == wanted.failure for e in said))
    )


def ran(one: Execution) -> bool:
    """Whether it is a run: neither skipped before any attempt nor ordered and not yet claimed."""
    return one.state != "scheduled" and (one.state != "skipped" or one.began_at is not None)


def failure_of(event: Event | None) -> str | None:
    """The class of the failure that an event states."""
    if isinstance(event, Failed):
        return event.kind
    return "lost" if isinstance(event, Lost) else None


def fits(job: JobRow, choice: JobChoice) -> bool:
    """Whether the choice means this job, as it is now."""
    if choice.label is not None:
        name, value = choice.label
        if name not in job.labels or value not in (None, job.labels[name]):
            return False
    return (
        choice.job_id in (None, job.id)
        and choice.name in (None, job.name)
        and choice.queue in (None, job.queue)
        and choice.owner in (None, job.owner)
    )
