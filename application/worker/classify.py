"""What an exception says about trying again.

A timeout or a refused connection is a blip and deserves its retry; an invalid argument, a missing
permission or a thing that is not there fails the same way every time and goes to a person at once.
What is neither is unknown, and is retried until the attempts are used up.

Libraries are recognised by the names of their classes and by the attributes in which they carry a
status, never by importing them. In this order, the first that knows decides:

    1. what the handler said itself (Permanent, Retryable), then the user's own table
    2. a status: HTTP (response.status_code, status, code), gRPC (code()), SQL (sqlstate, pgcode)
    3. names of clients' exceptions, most specific class first
    4. the standard library's classes and error numbers
    5. what it was raised from (``raise … from error``), or what a group of exceptions consists of
"""

import asyncio
import errno
import json
import socket
import ssl
from collections.abc import Iterator
from typing import Any, cast

from pydantic import ValidationError

from horolog.application.worker.raised import Permanent, Retryable
from horolog.domain.errors import InvalidSetting, QueueUnavailable, StoreUnavailable
from horolog.domain.failure import FAILURE_KINDS, FailureKind

_MAX_CAUSES = 8

_HTTP_TRANSPORT = frozenset({408, 421, 425, 429})
_HTTP_UNDECIDED = frozenset({409, 423, 424})
_HTTP_UNABLE = frozenset({501, 505, 506, 510})

_SQL_TRANSPORT = ("08", "40", "53", "55P03", "57P", "57014", "58", "25006")
_SQL_ARGUMENT = ("22", "28", "3D", "3F", "42")

_GRPC: dict[str, FailureKind] = {
    "UNAVAILABLE": "transport",
    "DEADLINE_EXCEEDED": "transport",
    "RESOURCE_EXHAUSTED": "transport",
    "ABORTED": "transport",
    "INVALID_ARGUMENT": "argument",
    "NOT_FOUND": "argument",
    "PERMISSION_DENIED": "argument",
    "UNAUTHENTICATED": "argument",
    "OUT_OF_RANGE": "argument",
    "UNIMPLEMENTED": "argument",
}

_NAMES: dict[str, FailureKind] = {
    # httpx, httpcore
    "TransportError": "transport",
    "UnsupportedProtocol": "argument",
    "LocalProtocolError": "argument",
    "RemoteProtocolError": "transport",
    "NetworkError": "transport",
    "TimeoutException": "transport",
    # requests, urllib3, urllib
    "Timeout": "transport",
    "ChunkedEncodingError": "transport",
    "ProtocolError": "transport",
    "MaxRetryError": "transport",
    "NewConnectionError": "transport",
    "IncompleteRead": "transport",
    "URLError": "transport",
    "InvalidURL": "argument",
    "InvalidSchema": "argument",
    "MissingSchema": "argument",
    "InvalidHeader": "argument",
    # aiohttp
    "ClientConnectionError": "transport",
    "ClientPayloadError": "transport",
    "ServerTimeoutError": "transport",
    "ServerDisconnectedError": "transport",
    # boto, grpc, redis, nats, kafka, AMQP and others
    "EndpointConnectionError": "transport",
    "ConnectTimeoutError": "transport",
    "ReadTimeoutError": "transport",
    "APIConnectionError": "transport",
    "APITimeoutError": "transport",
    "RateLimitError": "transport",
    "BusyLoadingError": "transport",
    "ConnectionError": "transport",
    "ConnectionClosed": "transport",
    "ConnectionClosedError": "transport",
    "NoServersError": "transport",
    "AMQPConnectionError": "transport",
    "TimeoutError": "transport",
    "SMTPServerDisconnected": "transport",
    "SMTPConnectError": "transport",
    # database drivers (DB-API names); a SQL state, where there is one, was looked at before
    "OperationalError": "transport",
    "InterfaceError": "transport",
    "PoolTimeout": "transport",
    "ProgrammingError": "argument",
    "DataError": "argument",
    # validation and things that are not there
    "ValidationError": "argument",
    "DoesNotExist": "argument",
    "ObjectDoesNotExist": "argument",
    "NoResultFound": "argument",
    "NotFound": "argument",
    "NotFoundError": "argument",
    "Forbidden": "argument",
    "Unauthorized": "argument",
}

_NETWORK_ERRNOS = frozenset(
    {
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EINTR,
        errno.EMFILE,
        errno.ENETDOWN,
        errno.ENETRESET,
        errno.ENETUNREACH,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOTCONN,
        errno.EPIPE,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)

_STANDARD: tuple[tuple[type[BaseException], FailureKind], ...] = (
    (asyncio.CancelledError, "unknown"),
    (ssl.SSLCertVerificationError, "argument"),
    (ssl.SSLError, "transport"),
    (TimeoutError, "transport"),
    (ConnectionError, "transport"),
    (socket.gaierror, "transport"),
    (EOFError, "transport"),
    (StoreUnavailable, "transport"),
    (QueueUnavailable, "transport"),
    (ValidationError, "argument"),
    (PermissionError, "argument"),
    (FileNotFoundError, "argument"),
    (NotADirectoryError, "argument"),
    (IsADirectoryError, "argument"),
    (FileExistsError, "argument"),
    # A downstream in trouble answers with something that is no JSON: not the caller's mistake.
    (json.JSONDecodeError, "unknown"),
    (TypeError, "argument"),
    (ValueError, "argument"),
    (LookupError, "argument"),
    (NotImplementedError, "argument"),
)


class Classification:
    """The table: what a user stated goes before what is known here."""

    def __init__(self) -> None:
        self._stated: dict[type[BaseException], FailureKind] = {}

    def add(self, error: type[BaseException], kind: FailureKind) -> None:
        """States the kind of an exception class; ``InvalidSetting`` for what is neither."""
        if not (isinstance(error, type) and issubclass(error, BaseException)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidSetting(f"{error!r} is no class of exceptions")
        if kind not in FAILURE_KINDS:
            raise InvalidSetting(f"{kind!r} is no kind of failure; they are: {FAILURE_KINDS}")
        self._stated[error] = kind

    def kind(self, error: BaseException) -> FailureKind:
        """The kind of failure; ``"unknown"`` where nothing is known."""
        for cause in _chain(error):
            if (kind := self._own_kind(cause)) is not None:
                return kind
        return "unknown"

    def _own_kind(self, error: BaseException) -> FailureKind | None:
        if isinstance(error, Permanent):
            return "permanent"
        if isinstance(error, Retryable):
            return "retryable"
        for ancestor in type(error).__mro__:
            if ancestor in self._stated:
                return self._stated[ancestor]
        if isinstance(error, BaseExceptionGroup):
            return self._of_group(cast("BaseExceptionGroup[BaseException]", error))
        return _by_status(error) or _by_name(error) or _by_class(error)

    def _of_group(self, group: BaseExceptionGroup[BaseException]) -> FailureKind:
        kinds = {self.kind(member) for member in group.exceptions}
        for decisive in ("permanent", "argument", "retryable", "transport"):
            if decisive in kinds:
                return decisive
        return "unknown"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and what it was explicitly raised from."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__


def _by_status(error: BaseException) -> FailureKind | None:
    sqlstate = _attribute(error, "sqlstate") or _attribute(error, "pgcode")
    if isinstance(sqlstate, str):
        if sqlstate.startswith(_SQL_TRANSPORT):
            return "transport"
        return "argument" if sqlstate.startswith(_SQL_ARGUMENT) else "unknown"
    if type(error).__module__.startswith("sqlalchemy"):
        wrapped = _attribute(error, "orig")
        if isinstance(wrapped, BaseException):
            return _by_status(wrapped) or _by_name(wrapped)
    status = _http_status(error)
    if status is not None:
        return _by_http(status)
    return None


def _http_status(error: BaseException) -> int | None:
    response = _attribute(error, "response")
    candidates = [
        _attribute(response, "status_code"),
        _attribute(response, "status"),
        _attribute(error, "status_code"),
    ]
    if isinstance(response, dict):  # botocore
        metadata: Any = cast("dict[str, Any]", response).get("ResponseMetadata")
        if isinstance(metadata, dict):
            candidates.append(cast("dict[str, Any]", metadata).get("HTTPStatusCode"))
    name = type(error).__name__
    if "HTTP" in name or "Http" in name or "Response" in name or "Status" in name:
        candidates += [_attribute(error, "status"), _attribute(error, "code")]
    for candidate in candidates:
        if isinstance(candidate, int) and 400 <= candidate <= 599:
            return candidate
    return None


def _by_http(status: int) -> FailureKind:
    if status in _HTTP_TRANSPORT or (status >= 500 and status not in _HTTP_UNABLE):
        return "transport"
    return "unknown" if status in _HTTP_UNDECIDED else "argument"


def _by_name(error: BaseException) -> FailureKind | None:
    for ancestor in type(error).__mro__:
        if ancestor.__module__ == "builtins":
            break
        if ancestor.__name__ in ("RpcError", "AioRpcError"):
            return _by_grpc(error)
        if ancestor.__name__ in _NAMES:
            return _NAMES[ancestor.__name__]
    return None


def _by_grpc(error: BaseException) -> FailureKind:
    code = _attribute(error, "code")
    try:
        name = str(getattr(code() if callable(code) else code, "name", ""))
    except Exception:  # noqa: BLE001 - a user's object, asked a question
        return "unknown"
    return _GRPC.get(name, "unknown")


def _by_class(error: BaseException) -> FailureKind | None:
    for kind_of, kind in _STANDARD:
        if isinstance(error, kind_of):
            return kind
    if isinstance(error, OSError) and error.errno in _NETWORK_ERRNOS:
        return "transport"
    return None


def _attribute(thing: object, name: str) -> Any:
    """An attribute of somebody's object; reading it may raise anything."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a user's exception
        return None
