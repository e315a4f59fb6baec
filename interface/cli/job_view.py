"""How a job and its occurrences are shown, and how the name that a person gave leads to them."""

from typing import TYPE_CHECKING
from uuid import UUID

from horolog.interface.cli.rendering import Output
from horolog.interface.cli.schedule_text import schedule_text

if TYPE_CHECKING:
    from horolog.application.answers.job import Job
    from horolog.application.answers.occurrence import Occurrence
    from horolog.interface.scheduler import Scheduler


def show_job(output: Output, job: "Job") -> None:
    """One job: the JSON document, or its fields."""
    if output.as_json:
        output.document(job)
        return
    retry = job.retry
    output.fields(
        {
            "id": str(job.id),
            "key": job.key,
            "name": job.name,
            "status": job.status,
            "next run": job.next_run,
            "schedule": schedule_text(job.schedule.to_json()),
            "payload": job.payload,
            "queue": job.queue,
            "priority": job.priority or None,
            "retry": f"{retry.max_attempts} attempts, {retry.base:g} s × {retry.factor:g}"
            f" up to {retry.cap:g} s",
            "timeout": job.timeout,
            "overlap": job.overlap,
            "catch up": f"{job.catch_up}, within {job.catch_up_window:g} s",
            "concurrency": _concurrency(job),
            "owner": job.owner,
            "subject": job.subject,
            "labels": job.labels,
            "version": job.version,
        }
    )


def _concurrency(job: "Job") -> str | None:
    """What the job shares with others, and within which limits."""
    parts = [] if job.concurrency_key is None else [job.concurrency_key]
    if job.concurrency_limit is not None:
        parts.append(f"at most {job.concurrency_limit} at once")
    if job.rate_limit is not None:
        parts.append(f"at most {job.rate_limit:g} a second")
    return ", ".join(parts) or None


def show_occurrence(output: Output, occurrence: "Occurrence") -> None:
    """One occurrence: the JSON document, or its fields."""
    if output.as_json:
        output.document(occurrence)
        return
    output.fields(
        {
            "id": str(occurrence.id),
            "job": str(occurrence.job_id),
            "state": occurrence.state,
            "fire time": occurrence.fire_time,
            "meant to begin": occurrence.jittered_at,
            "ordered by": occurrence.kind,
            "attempt": occurrence.attempt,
            "due": occurrence.due_at,
            "finished": occurrence.finished_at,
            "last event": occurrence.since,
            "worker": occurrence.worker,
            "took": None if occurrence.seconds is None else f"{occurrence.seconds:.3f} s",
            "result": occurrence.result,
            "error": occurrence.error,
            "reason": occurrence.reason,
        }
    )


def job_id(scheduler: "Scheduler", id_or_key: str) -> UUID:
    """The id behind what a person typed. Raises ``UnknownJob``."""
    return scheduler.job(id_or_key).id
