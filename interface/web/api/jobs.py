"""Jobs: registered, declared, found, and asked about."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import JSONResponse

from horolog.application.answers.change import Change
from horolog.application.answers.difference import Difference
from horolog.application.answers.job import Job
from horolog.application.answers.plain import plain
from horolog.domain.job import JobStatus
from horolog.interface.identifiers import as_uuid
from horolog.interface.job_file import read_schedule
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.api.answers import Comparison, Event, Fires, Many, Page
from horolog.interface.web.api.asking import (
    Asking,
    Instant,
    Listing,
    Reading,
    Text,
    Versions,
    Writing,
    answer,
)
from horolog.interface.web.api.bodies import (
    ApplyBody,
    CompareBody,
    JobBody,
    ManyBody,
    PreviewBody,
)
from horolog.interface.web.api.preconditions import job_answer
from horolog.interface.web.api.repeated import IdempotencyKey, as_registered, checked_key

router = APIRouter(tags=["jobs"])

JobId = Annotated[Text, Path(description="The job's id, or its key.", min_length=1)]


def job_id_of(scheduler: Scheduler, id_or_key: str) -> str:
    """The id of the job that the path names; ``UnknownJob``."""
    return id_or_key if as_uuid(id_or_key) is not None else str(scheduler.job(id_or_key).id)


@router.post("/jobs", status_code=201, response_model=Job)
def register(
    scheduler: Writing, body: JobBody, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """Registers a job; when this answers, it is in the log.

    With a `key` it may be repeated: the same definition is the same job, another one is refused
    (409) unless `replace` is true. Without one the `Idempotency-Key` becomes the key.
    """
    given, spec = checked_key(idempotency_key), body.spec()
    if given is not None and body.key is None:
        spec = replace(spec, key=given)
    (job,) = scheduler.register_many([spec])
    if given is not None and not body.replace:
        job = as_registered(scheduler, job)
    shown = job_answer(job, status=201)
    shown.headers["Location"] = f"/api/v1/jobs/{job.id}"
    return shown


@router.post("/jobs/many", status_code=201, response_model=Many[Job])
def register_many(scheduler: Writing, body: ManyBody) -> JSONResponse:
    """Registers up to 1,000 jobs in one transaction: all of them, or none.

    Those with a `key` may be repeated.
    """
    specs = [job.spec() for job in body.jobs]
    jobs = list(scheduler.register_many(specs, batch=len(specs)))
    return JSONResponse({"items": [job.to_dict() for job in jobs]}, 201)


@router.post("/jobs/apply", response_model=Difference)
def apply(scheduler: Writing, body: ApplyBody) -> JSONResponse:
    """Makes a declared set of keyed jobs true: registers what is missing, changes what differs.

    A set that is true already leaves no event, so it may be repeated. `dry_run` writes nothing.
    """
    return answer(
        scheduler.apply(
            [job.spec() for job in body.jobs],
            prune=body.prune,
            within=body.within,
            dry_run=body.dry_run,
            reason=body.reason,
        )
    )


@dataclass(frozen=True, kw_only=True)
class Jobs(Listing):
    """Which jobs."""

    status: JobStatus | None = None
    name: Text | None = None
    label: Annotated[Text | None, Query(description="`region=us`, or a name alone.")] = None
    subject: Annotated[Text | None, Query(description="Whose data they carry.")] = None
    as_of: Annotated[Instant | None, Query(description="As they were at this instant.")] = None


@router.get("/jobs", response_model=Page[Job])
def jobs(scheduler: Reading, asked: Annotated[Jobs, Depends()]) -> JSONResponse:
    """Jobs in the order of their ids."""
    return asked.page(scheduler.jobs)


@router.get("/job", response_model=Job)
def job_by_key(scheduler: Reading, key: Text, as_of: Instant | None = None) -> JSONResponse:
    """The job with a key, whatever characters it has."""
    return job_answer(scheduler.job(key, as_of=as_of))


@router.get("/jobs/{job_id}", response_model=Job)
def job(
    scheduler: Reading,
    job_id: JobId,
    as_of: Annotated[Instant | None, Query(description="As it was at this instant.")] = None,
) -> JSONResponse:
    """A job. Its `ETag` is its version, for `If-Match`."""
    return job_answer(scheduler.job(job_id, as_of=as_of))


@router.get("/jobs/{job_id}/upcoming", response_model=Fires)
def upcoming(
    scheduler: Reading, job_id: JobId, n: Annotated[int, Query(ge=1, le=1000)] = 10
) -> JSONResponse:
    """The next fire times, each with its local time and what a clock change did to it."""
    return JSONResponse({"items": plain(scheduler.upcoming(job_id, n))})


@router.get("/jobs/{job_id}/history", response_model=Page[Event])
def history(
    scheduler: Reading, job_id: JobId, asked: Annotated[Versions, Depends()]
) -> JSONResponse:
    """The job's events, oldest first; `after` is a version."""
    return asked.versions(scheduler.history, job_id_of(scheduler, job_id))


@router.get("/jobs/{job_id}/changes", response_model=Page[Change])
def changes(
    scheduler: Reading, job_id: JobId, asked: Annotated[Versions, Depends()]
) -> JSONResponse:
    """Who changed the job, from what to what, when and why; `after` is a version."""
    return asked.versions(scheduler.changes, job_id)


@router.post("/jobs/{job_id}/compare", response_model=Comparison)
def compare(scheduler: Reading, job_id: JobId, body: CompareBody) -> JSONResponse:
    """What another schedule would change; changes nothing."""
    found = scheduler.compare(job_id, read_schedule(body.schedule), n=body.n)
    return JSONResponse(plain(found))


@router.post("/schedules/preview", response_model=Fires, tags=["schedules"])
def preview(caller: Asking, body: PreviewBody) -> JSONResponse:
    """The next fire times of a schedule that no job need have."""
    del caller  # anybody who may look
    after = body.after or datetime.now(UTC)
    return JSONResponse({"items": plain(read_schedule(body.schedule).upcoming(after, body.n))})
