"""What is done to a job: each may carry a reason, and the version that it was decided from."""

from fastapi import APIRouter
from starlette.responses import JSONResponse

from horolog.application.answers.job import Job
from horolog.application.answers.occurrence import Occurrence
from horolog.application.commands.backfill_request import BackfillOptions
from horolog.interface.job_file import read_schedule
from horolog.interface.web.api.answers import Backfilled
from horolog.interface.web.api.asking import Writing, answer
from horolog.interface.web.api.bodies import (
    BackfillBody,
    ChangeBody,
    ReasonBody,
    ResumeBody,
    ScheduleBody,
    TriggerBody,
)
from horolog.interface.web.api.jobs import JobId, job_id_of
from horolog.interface.web.api.preconditions import IfMatch, expected_version, job_answer
from horolog.interface.web.api.repeated import (
    IdempotencyKey,
    as_ordered,
    backfilled,
    checked_key,
)

router = APIRouter(tags=["jobs"])


@router.patch("/jobs/{job_id}", response_model=Job)
def update(
    scheduler: Writing,
    job_id: JobId,
    body: ChangeBody,
    if_match: IfMatch = None,
) -> JSONResponse:
    """Changes the payload and the policies that are given; runs that have not begun take them."""
    identity = job_id_of(scheduler, job_id)
    version = expected_version(scheduler, identity, if_match)
    return job_answer(
        scheduler.update(identity, expected_version=version, reason=body.reason, **body.given())
    )


@router.put("/jobs/{job_id}/schedule", response_model=Job)
def reschedule(
    scheduler: Writing, job_id: JobId, body: ScheduleBody, if_match: IfMatch = None
) -> JSONResponse:
    """From now on only the new schedule fires; what was claimed before still runs."""
    identity = job_id_of(scheduler, job_id)
    schedule = read_schedule(body.schedule)
    version = expected_version(scheduler, identity, if_match)
    return job_answer(
        scheduler.reschedule(identity, schedule, expected_version=version, reason=body.reason)
    )


@router.post("/jobs/{job_id}/pause", response_model=Job)
def pause(
    scheduler: Writing, job_id: JobId, body: ReasonBody | None = None, if_match: IfMatch = None
) -> JSONResponse:
    """No fire time is claimed until the job is resumed."""
    identity = job_id_of(scheduler, job_id)
    version = expected_version(scheduler, identity, if_match)
    reason = None if body is None else body.reason
    return job_answer(scheduler.pause(identity, expected_version=version, reason=reason))


@router.post("/jobs/{job_id}/resume", response_model=Job)
def resume(
    scheduler: Writing, job_id: JobId, body: ResumeBody | None = None, if_match: IfMatch = None
) -> JSONResponse:
    """The schedule goes on, at its next fire time or at the first one of the pause."""
    identity = job_id_of(scheduler, job_id)
    version = expected_version(scheduler, identity, if_match)
    asked = body or ResumeBody()
    return job_answer(
        scheduler.resume(
            identity, catch_up=asked.catch_up, expected_version=version, reason=asked.reason
        )
    )


@router.post("/jobs/{job_id}/cancel", response_model=Job)
def cancel(
    scheduler: Writing, job_id: JobId, body: ReasonBody | None = None, if_match: IfMatch = None
) -> JSONResponse:
    """The job never fires again; what runs is asked to stop. Repeated, it changes nothing."""
    identity = job_id_of(scheduler, job_id)
    version = expected_version(scheduler, identity, if_match)
    reason = None if body is None else body.reason
    return job_answer(scheduler.cancel(identity, expected_version=version, reason=reason))


@router.post("/jobs/{job_id}/trigger", status_code=201, response_model=Occurrence)
def trigger(
    scheduler: Writing,
    job_id: JobId,
    body: TriggerBody | None = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Orders one extra run, now or at an instant.

    `request_id`, or else the `Idempotency-Key`, makes it repeatable.
    """
    asked = body or TriggerBody()
    key = asked.request_id or checked_key(idempotency_key)
    occurrence = scheduler.trigger(
        job_id_of(scheduler, job_id), at=asked.at, request_id=key, reason=asked.reason
    )
    if key is not None:
        occurrence = as_ordered(occurrence, asked.at)
    headers = {"Location": f"/api/v1/occurrences/{occurrence.id}"}
    return answer(occurrence, status=201, headers=headers)


@router.post("/jobs/{job_id}/backfill", response_model=Backfilled)
def backfill(
    scheduler: Writing,
    job_id: JobId,
    body: BackfillBody,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Orders runs for the fire times of a range that have none, or says which (`dry_run`).

    With a `request_id`, or else an `Idempotency-Key`, a repetition is answered with the number that
    the first request ordered.
    """
    identity = job_id_of(scheduler, job_id)
    key = body.request_id or checked_key(idempotency_key)
    options = BackfillOptions(
        reprocess=body.reprocess,
        definition=body.definition,
        reverse=body.reverse,
        rate=body.rate,
        request_id=key,
    )
    if body.dry_run:
        runs = scheduler.backfill(identity, body.start, body.end, dry_run=True, **options)
        return JSONResponse({"count": len(runs), "planned": [run.to_dict() for run in runs]})
    job = scheduler.job(identity).id
    if key is not None:
        backfilled(scheduler, job, key, body)  # refuses the key of another range
    count = scheduler.backfill(job, body.start, body.end, reason=body.reason, **options)
    if key is not None:
        count = backfilled(scheduler, job, key, body)
    return JSONResponse({"count": count, "planned": None})
