"""All routes of the page, which are no part of the API's description."""

from fastapi import APIRouter

from horolog.interface.web.page import (
    commands,
    figures,
    jobs,
    letters,
    login,
    now,
    past,
    runs,
    system,
)

router = APIRouter(include_in_schema=False)
for part in (login, now, jobs, runs, letters, figures, system, past, commands):
    router.include_router(part.router)
