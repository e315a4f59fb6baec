"""Subjects: the people whose data jobs carry, and the erasing of it."""

from fastapi import APIRouter
from starlette.responses import JSONResponse

from horolog.application.privacy.forgetting import Forgetting
from horolog.interface.web.api.asking import Writing, answer
from horolog.interface.web.api.bodies import ForgetBody

router = APIRouter(tags=["subjects"])


@router.post("/subjects/forget", response_model=Forgetting)
def forget(scheduler: Writing, body: ForgetBody) -> JSONResponse:
    """Destroys the key of a subject and cancels its jobs; it cannot be undone.

    Nobody can read its payloads, results and errors afterwards, and no job of it can be registered
    again. Forgetting again does what is left, if anything is: `already` says so.
    """
    return answer(scheduler.forget(body.subject, reason=body.reason))
