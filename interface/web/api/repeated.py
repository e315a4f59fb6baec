"""What a repeated request is answered: the ``Idempotency-Key`` of a client whose answer was lost.

It maps onto the keys that the log has anyway: of a registration it becomes the job's key (unless
the body names one), of a trigger and a backfill the request id. So nothing is kept beside the log,
and the key holds for as long as the log does. The answer to the repetition is the first one: it is
made from what the log says of then, not of now.
"""

from dataclasses import replace
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Header
from pydantic.json_schema import SkipJsonSchema

from horolog.application.answers.job import Job
from horolog.application.answers.occurrence import Occurrence
from horolog.domain.errors import InvalidPolicy, KeyConflict
from horolog.domain.job import evolve
from horolog.domain.job_events import BackfillRequested, JobEvent
from horolog.domain.occurrence import ordered
from horolog.domain.text import is_storable
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.api.bodies import BackfillBody

MAX_KEY = 256

IdempotencyKey = Annotated[
    str | SkipJsonSchema[None],
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY,
        description="A repetition with the same key changes nothing and is answered as the first"
        " request was.",
    ),
]


def checked_key(key: str | None) -> str | None:
    """The key without the quotes that some clients put around it."""
    if key is None:
        return None
    if len(key) > 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key.strip() or not is_storable(key):
        raise InvalidPolicy(f"Idempotency-Key={key[:80]!r}: give text of 1 to {MAX_KEY} characters")
    return key


def as_registered(scheduler: Scheduler, job: Job) -> Job:
    """The job as its registration left it."""
    first = scheduler.history(job.id, limit=1)
    if (job.version == 1 and job.fires == 0) or not first:
        return job
    event = first[0].event
    assert isinstance(event, JobEvent)
    return Job.of(replace(evolve(None, job.id, event), version=1))


def as_ordered(occurrence: Occurrence, at: datetime | None) -> Occurrence:
    """The run as its order left it; ``KeyConflict`` where the key ordered it for another time."""
    if at is not None and at != occurrence.fire_time:
        raise KeyConflict(
            f"this key has ordered a run at {occurrence.fire_time.isoformat()}, not at"
            f" {at.isoformat()}: another run needs another key"
        )
    return Occurrence.of(
        ordered(
            occurrence.id,
            occurrence.job_id,
            occurrence.partition,
            occurrence.fire_time,
            occurrence.kind,
        )
    )


def backfilled(scheduler: Scheduler, job_id: UUID, key: str, asked: BackfillBody) -> int:
    """How many runs this key has ordered so far; ``KeyConflict`` where it was for another range."""
    count, after = 0, 0
    while events := scheduler.history(job_id, after=after, limit=1000):
        after = events[-1].version
        for logged in events:
            event = logged.event
            if not isinstance(event, BackfillRequested) or event.request_id != key:
                continue
            if (event.start, event.end) != (asked.start, asked.end):
                raise KeyConflict(
                    f"this key has ordered a backfill from {event.start.isoformat()} to"
                    f" {event.end.isoformat()}: another range needs another key"
                )
            count += len(event.fires)
    return count
