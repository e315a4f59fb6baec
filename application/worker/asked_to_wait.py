"""How long a downstream asked to be left alone: the Retry-After of the usual clients' exceptions.

Found by attributes, so no client is imported: ``response.headers`` (httpx, requests, aiohttp),
``headers`` (urllib, aiohttp), ``ResponseMetadata`` (botocore), ``retry_after`` (redis, chat and
payment clients). An answer that makes no sense is none.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, cast

MAX_S = 86_400.0
"""The longest wait that is honoured; more would let a broken downstream stop a job for good."""

_MAX_CAUSES = 8


def asked_to_wait_s(error: BaseException, now: datetime) -> float | None:
    """Seconds until the downstream wants to be asked again, by the exception or what caused it."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return None
        for said in _said(cause):
            if (seconds := _seconds(said, now)) is not None:
                return seconds
        cause = cause.__cause__
    return None


def _said(error: BaseException) -> Iterator[object]:
    response = _attribute(error, "response")
    headers = [_attribute(response, "headers"), _attribute(error, "headers")]
    if isinstance(response, Mapping):  # botocore
        metadata: Any = cast("Mapping[str, Any]", response).get("ResponseMetadata")
        if isinstance(metadata, Mapping):
            headers.append(cast("Mapping[str, Any]", metadata).get("HTTPHeaders"))
    for each in headers:
        get = _attribute(each, "get")
        if not callable(get):
            continue
        for name in ("Retry-After", "retry-after"):
            try:
                yield get(name)
            except Exception:  # noqa: BLE001 - a user's object, asked a question
                break
    yield _attribute(error, "retry_after")


def _seconds(said: object, now: datetime) -> float | None:
    seconds: float
    if isinstance(said, str):
        try:
            seconds = float(said)
        except ValueError:
            try:
                at = parsedate_to_datetime(said)
            except ValueError:
                return None
            seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    elif isinstance(said, int | float) and not isinstance(said, bool):
        seconds = float(said)
    else:
        return None
    return min(max(seconds, 0.0), MAX_S) if isfinite(seconds) else None


def _attribute(thing: object, name: str) -> Any:
    """An attribute of somebody's object; reading it may raise anything."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a user's exception
        return None
