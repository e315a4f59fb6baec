"""The API as one router, with what OpenAPI says of it."""

from typing import Final

from fastapi import APIRouter

from horolog.interface.web.api import (
    audit,
    commands,
    jobs,
    letters,
    occurrences,
    subjects,
    system,
)
from horolog.interface.web.api.answers import REFUSALS
from horolog.interface.web.api.asking import STRICT

PREFIX: Final = "/api/v1"

DESCRIPTION: Final = """The commands and queries of Horolog for programs in any language.

Times are ISO 8601 with an offset, durations seconds, ids UUIDs. A refusal is
`application/problem+json` with a fixed `type`. A listing's page has at most `limit` items, and
`next` is the address of the following one. `ETag` of a job is its version: give it as `If-Match`.
A create that was sent with an `Idempotency-Key` may be sent again, and is answered as the first
time. Where the server has accounts, every request carries `Authorization: Bearer <secret>`."""

router = APIRouter(prefix=PREFIX, dependencies=STRICT, responses=REFUSALS)
for part in (jobs, commands, occurrences, letters, audit, subjects, system):
    router.include_router(part.router)
