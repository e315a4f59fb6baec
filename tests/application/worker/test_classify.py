"""What an exception says about trying again."""

import asyncio
import json
import socket
import ssl
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel, ValidationError

from horolog.application.worker.classify import Classification
from horolog.application.worker.raised import Permanent, Retryable
from horolog.domain.errors import InvalidSetting, StoreUnavailable


def invalid() -> ValidationError:
    class Model(BaseModel):
        number: int

    with pytest.raises(ValidationError) as caught:
        Model(number="x")  # pyright: ignore[reportArgumentType]
    return caught.value


def named(name: str, module: str, *bases: type[BaseException], **attributes: Any) -> BaseException:
    """An exception as a library has it, without the library."""
    kind = type(name, bases or (Exception,), {"__module__": module})
    error = kind("text")
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    return error


class Response:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class Code:
    def __init__(self, name: str) -> None:
        self.name = name


TRANSPORT = [
    TimeoutError(), ConnectionResetError(), ConnectionRefusedError(),
    BrokenPipeError(), OSError(113, "no route"), OSError(101, "unreachable"), socket.gaierror(-3),
    ssl.SSLError("reset"), EOFError(), StoreUnavailable("away"),
    psycopg.OperationalError("lost"), psycopg.errors.SerializationFailure(),
    psycopg.errors.DeadlockDetected(), psycopg.errors.AdminShutdown(),
    psycopg.InterfaceError("closed"),
    named("ConnectTimeout", "httpx", type(named("TransportError", "httpx"))),
    named("HTTPStatusError", "httpx", response=Response(503)),
    named("HTTPStatusError", "httpx", response=Response(429)),
    named("HTTPError", "requests.exceptions", OSError, response=Response(502)),
    named("ConnectionError", "requests.exceptions", OSError),
    named("ClientResponseError", "aiohttp", status=408),
    named("ServerDisconnectedError", "aiohttp"),
    named("AioRpcError", "grpc.aio", code=lambda: Code("UNAVAILABLE")),
    named("ClientError", "botocore", response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
    named("OperationalError", "sqlite3"),
    named("OperationalError", "psycopg2", pgcode="40001"),
    named("SerializationError", "asyncpg", sqlstate="40001"),
]  # fmt: skip

ARGUMENT = [
    invalid(), ValueError("x"), TypeError("x"), KeyError("x"), LookupError("x"),
    PermissionError(13, "x"), FileNotFoundError(2, "x"), NotImplementedError(),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"),
    ssl.SSLCertVerificationError("expired"),
    psycopg.errors.UndefinedTable(), psycopg.errors.InsufficientPrivilege(),
    psycopg.errors.NumericValueOutOfRange(),
    named("HTTPStatusError", "httpx", response=Response(404)),
    named("HTTPStatusError", "httpx", response=Response(403)),
    named("HTTPError", "urllib.error", OSError, code=400),
    named("UnsupportedProtocol", "httpx", type(named("TransportError", "httpx"))),
    named("InvalidURL", "requests.exceptions", OSError, ValueError),
    named("DoesNotExist", "app.models"),
    named("RpcError", "grpc", code=lambda: Code("NOT_FOUND")),
]  # fmt: skip

UNKNOWN = [
    RuntimeError("x"), Exception("x"), ZeroDivisionError(), AttributeError("x"), SystemExit(1),
    KeyboardInterrupt(), asyncio.CancelledError(), MemoryError(), RecursionError(),
    json.JSONDecodeError("x", "<html>", 0), psycopg.errors.UniqueViolation(),
    OSError(28, "no space"), named("HTTPStatusError", "httpx", response=Response(409)),
]  # fmt: skip


@pytest.mark.parametrize("error", TRANSPORT, ids=repr)
def test_a_blip_is_transport_shaped(error: BaseException) -> None:
    assert Classification().kind(error) == "transport"


@pytest.mark.parametrize("error", ARGUMENT, ids=repr)
def test_what_fails_the_same_way_every_time_is_argument_shaped(error: BaseException) -> None:
    assert Classification().kind(error) == "argument"


@pytest.mark.parametrize("error", UNKNOWN, ids=repr)
def test_what_is_neither_is_unknown(error: BaseException) -> None:
    assert Classification().kind(error) == "unknown"


def test_what_a_handler_says_goes_before_everything() -> None:
    assert Classification().kind(Permanent("x")) == "permanent"
    assert Classification().kind(Retryable("x")) == "retryable"


def test_a_user_s_table_goes_before_ours_and_its_most_specific_class_wins() -> None:
    class Mine(ValueError): ...

    class Narrow(Mine): ...

    classification = Classification()
    classification.add(ValueError, "unknown")
    classification.add(Mine, "transport")
    assert classification.kind(Narrow()) == "transport"
    assert classification.kind(ValueError()) == "unknown"
    assert classification.kind(TypeError()) == "argument"
    with pytest.raises(InvalidSetting, match="no kind of failure"):
        classification.add(ValueError, "whatever")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidSetting, match="no class of exceptions"):
        classification.add(3, "transport")  # pyright: ignore[reportArgumentType]


def test_what_an_unknown_error_was_raised_from_decides() -> None:
    class Wrapped(Exception): ...

    error = Wrapped("x")
    error.__cause__ = ConnectionResetError()
    assert Classification().kind(error) == "transport"
    loop = Wrapped("y")
    loop.__cause__ = loop
    assert Classification().kind(loop) == "unknown"


def test_a_group_is_as_hopeless_as_its_most_hopeless_member() -> None:
    group = ExceptionGroup("x", [TimeoutError(), ExceptionGroup("y", [ValueError()])])
    assert Classification().kind(group) == "argument"
    assert Classification().kind(ExceptionGroup("x", [TimeoutError(), OSError()])) == "transport"


def test_an_exception_that_resists_questions_is_unknown() -> None:
    class Nasty(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("no")

    assert Classification().kind(Nasty()) == "unknown"
