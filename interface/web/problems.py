"""Refusals as ``application/problem+json`` (RFC 9457): one status and one type for each error.

A program tells errors apart by ``type``, which stays as it is; ``detail`` is for people, and
``error`` the name that the Python API has for it.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import JSONResponse

from horolog.domain import errors

API: Final = "/api/"
MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = "5"

STATUS: Final[Mapping[type[errors.HorologError], int]] = {
    errors.HorologError: 500,
    errors.InvalidSchedule: 422,
    errors.InvalidPayload: 422,
    errors.InvalidPolicy: 422,
    errors.InvalidSetting: 422,
    errors.UnknownJob: 404,
    errors.UnknownOccurrence: 404,
    errors.KeyConflict: 409,
    errors.VersionConflict: 412,
    errors.NotAllowed: 409,
    errors.SubjectForgotten: 409,
    errors.NoMasterKey: 503,
    errors.StaleFence: 409,
    errors.UnreadableEvent: 500,
    errors.ProjectionStopped: 409,
    errors.OutOfRange: 422,
    errors.StoreUnavailable: 503,
    errors.SchemaMissing: 503,
    errors.SchemaTooNew: 503,
    errors.QueueUnavailable: 503,
}


class Problem(JSONResponse):
    """A refusal."""

    media_type = MEDIA_TYPE


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    title: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Problem:
    """``kind`` names it: "unknown-job" has the type ``urn:horolog:problem:unknown-job``."""
    said = {
        "type": f"urn:horolog:problem:{kind}",
        "title": title or kind.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        **more,
    }
    return Problem(said, status, dict(headers or {}))


def problem_of(error: errors.HorologError) -> Problem:
    """The answer to a request that the application refused."""
    kind = next(k for k in type(error).__mro__ if k in STATUS)
    status = STATUS[kind]
    more: dict[str, Any] = {"error": kind.__name__}
    if isinstance(error, errors.VersionConflict):
        more |= {"seen": error.seen, "current": error.current}
    if isinstance(error, errors.ProjectionStopped):
        more["position"] = error.position
    return problem(
        status,
        _dashed(kind.__name__),
        str(error),
        title=(kind.__doc__ or kind.__name__).split("\n", 1)[0].partition(":")[0].rstrip("."),
        headers={"Retry-After": RETRY_AFTER_S} if status == 503 else None,
        **more,
    )


def _dashed(name: str) -> str:
    """ "UnknownJob" as "unknown-job"."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
