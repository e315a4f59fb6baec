"""A job's version as its entity tag: ``ETag`` says which version was seen, ``If-Match`` demands it.

A change that was decided from an older version is refused with 412, as ``expected_version`` does.
The tag is that of what people stated of the job. Its next fire time moves on without a new version,
so nothing is answered from a cache (no ``If-None-Match``).
"""

import re
from typing import Annotated

from fastapi import Header
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import JSONResponse

from horolog.application.answers.job import Job
from horolog.domain.errors import VersionConflict
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.api.asking import answer

IfMatch = Annotated[
    str | SkipJsonSchema[None],
    Header(
        alias="If-Match",
        description='The version that the change was decided from, such as `"3"`: the `ETag`.',
    ),
]
_TAG = re.compile(r'"([^"]*)"')


def tag(job: Job) -> str:
    return f'"{job.version}"'


def job_answer(job: Job, *, status: int = 200) -> JSONResponse:
    """A job with its entity tag."""
    return answer(job, status=status, headers={"ETag": tag(job)})


def expected_version(scheduler: Scheduler, job_id: str, if_match: str | None) -> int | None:
    """The version that the header demands; ``None`` where any will do.

    Of several the present one is taken, if it is among them. Raises ``VersionConflict`` where none
    can be a version of a job: weak tags, which promise too little, among them.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    given = [] if "W/" in if_match else _TAG.findall(if_match)
    versions = [int(one) for one in given if one.isascii() and one.isdigit() and len(one) < 10]
    if len(versions) == 1:
        return versions[0]
    current = scheduler.job(job_id).version
    if current in versions:
        return current
    raise VersionConflict(
        f"If-Match: {if_match[:80]}: the job is at version {current}", current=current
    )
