"""All routes of the page, which are no part of the API's description."""

from fastapi import APIRouter

from horolog.interface.web.page import login

router = APIRouter(include_in_schema=False)
for part in (login,):
    router.include_router(part.router)
