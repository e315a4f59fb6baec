"""Occurrences: what became of each firing, and why."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import JSONResponse

from horolog.application.answers.explanation import Explanation
from horolog.application.answers.occurrence import Occurrence
from horolog.domain.occurrence import Phase
from horolog.interface.web.api.answers import Event, Page
from horolog.interface.web.api.asking import (
    Instant,
    Listing,
    Reading,
    Text,
    Versions,
    Writing,
    answer,
)
from horolog.interface.web.api.bodies import ReasonBody

router = APIRouter(tags=["occurrences"])

OccurrenceId = Annotated[Text, Path(description="The occurrence's id.", min_length=1)]


@dataclass(frozen=True, kw_only=True)
class Occurrences(Listing):
    """Which occurrences."""

    job_id: Text | None = None
    state: Phase | None = None
    since: Annotated[Instant | None, Query(description="Fire times from here on.")] = None
    until: Annotated[Instant | None, Query(description="Fire times before this.")] = None
    newest_first: bool = False


@router.get("/occurrences", response_model=Page[Occurrence])
def occurrences(scheduler: Reading, asked: Annotated[Occurrences, Depends()]) -> JSONResponse:
    """Occurrences in the order of their fire times, finished or not."""
    return asked.page(scheduler.occurrences)


@router.get("/occurrences/{occurrence_id}", response_model=Occurrence)
def occurrence(scheduler: Reading, occurrence_id: OccurrenceId) -> JSONResponse:
    """One firing of a job, and what has become of it."""
    return answer(scheduler.occurrence(occurrence_id))


@router.get("/occurrences/{occurrence_id}/history", response_model=Page[Event])
def history(
    scheduler: Reading, occurrence_id: OccurrenceId, asked: Annotated[Versions, Depends()]
) -> JSONResponse:
    """Its events, oldest first; `after` is a version."""
    return asked.versions(scheduler.history, scheduler.occurrence(occurrence_id).id)


@router.get("/occurrences/{occurrence_id}/explain", response_model=Explanation)
def explain(scheduler: Reading, occurrence_id: OccurrenceId) -> JSONResponse:
    """The causal story: from the job's registration to the outcome."""
    return answer(scheduler.explain(occurrence_id))


@router.post("/occurrences/{occurrence_id}/cancel", response_model=Occurrence)
def cancel(
    scheduler: Writing, occurrence_id: OccurrenceId, body: ReasonBody | None = None
) -> JSONResponse:
    """Cancels one run; its job goes on. Repeated, it changes nothing."""
    reason = None if body is None else body.reason
    return answer(scheduler.cancel_occurrence(occurrence_id, reason=reason))
