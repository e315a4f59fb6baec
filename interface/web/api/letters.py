"""Dead letters: what nobody will retry by themselves, and a person's order to."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse

from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.occurrence import Occurrence
from horolog.interface.web.api.answers import Count, Page
from horolog.interface.web.api.asking import Listing, Reading, Text, Writing, answer
from horolog.interface.web.api.bodies import ReasonBody, ReplayBody
from horolog.interface.web.api.occurrences import OccurrenceId

router = APIRouter(tags=["dead letters"])


@dataclass(frozen=True, kw_only=True)
class DeadLetters(Listing):
    """Whose, and of which handler."""

    owner: Text | None = None
    name: Text | None = None


@router.get("/dead-letters", response_model=Page[DeadLetter])
def dead_letters(scheduler: Reading, asked: Annotated[DeadLetters, Depends()]) -> JSONResponse:
    """Dead letters in the order of their fire times."""
    return asked.page(scheduler.dead_letters)


@router.post("/dead-letters/replay", response_model=Count)
def replay_many(scheduler: Writing, body: ReplayBody) -> JSONResponse:
    """Tries those of an owner or a handler again, oldest first; `dry_run` only counts them."""
    count = scheduler.replay_many(
        owner=body.owner,
        name=body.name,
        limit=body.limit,
        rate=body.rate,
        dry_run=body.dry_run,
        reason=body.reason,
    )
    return JSONResponse({"count": count})


@router.post("/dead-letters/{occurrence_id}/replay", response_model=Occurrence)
def replay(
    scheduler: Writing, occurrence_id: OccurrenceId, body: ReasonBody | None = None
) -> JSONResponse:
    """Tries it again at once, under the same key, with a fresh budget of attempts."""
    return answer(scheduler.replay(occurrence_id, reason=None if body is None else body.reason))


@router.post("/dead-letters/{occurrence_id}/discard", response_model=Occurrence)
def discard(
    scheduler: Writing, occurrence_id: OccurrenceId, body: ReasonBody | None = None
) -> JSONResponse:
    """Closes it for good; discarding it again changes nothing."""
    return answer(scheduler.discard(occurrence_id, reason=None if body is None else body.reason))
