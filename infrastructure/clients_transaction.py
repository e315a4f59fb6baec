"""The client's own connection, of whichever driver, as one that answers questions.

A question is a function of the namespace that takes a text and returns a text: every driver can ask
that. Nothing here begins, commits or rolls back: the transaction is the client's. No driver is
imported that the client has not imported already.

    sync    psycopg, psycopg2, SQLAlchemy's Connection and Session, Django's connection
    async   psycopg's AsyncConnection, asyncpg, SQLAlchemy's AsyncConnection and AsyncSession
"""

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from horolog.application.inbox.giving import Giving, Outcome, Question
from horolog.domain.errors import HorologError, InvalidSetting, SchemaMissing, StoreUnavailable
from horolog.infrastructure.postgres.database import checked_namespace

_Asks = Callable[[str, str], Any]
"""Asks a function by its quoted name; async drivers return an awaitable."""

_MISSING = frozenset({"3F000", "42P01", "42883"})  # no schema, table or function of that name
_REFUSED = frozenset({"42501", "25006"})  # privileges, read-only
_MAX_DEPTH = 8


def give(connection: object, namespace: str, giving: Giving) -> Outcome:
    """Drives the sequence on a sync connection.

    Raises what the sequence raises, ``InvalidSetting`` for what is no such connection,
    ``SchemaMissing`` and ``StoreUnavailable``; other errors of the driver come out as they are, so
    that a client's own repetition after a serialization failure works.
    """
    ask = _asks(connection, awaits=False)
    try:
        question = next(giving)
        while True:
            with _translated(namespace):
                answer = ask(_function(namespace, question), question.argument)
            question = giving.send(_text(answer))
    except StopIteration as end:
        return cast("Outcome", end.value)


async def give_async(connection: object, namespace: str, giving: Giving) -> Outcome:
    """Drives the sequence on a connection of asyncio; otherwise as :func:`give`."""
    ask = _asks(connection, awaits=True)
    try:
        question = next(giving)
        while True:
            with _translated(namespace):
                answer = await ask(_function(namespace, question), question.argument)
            question = giving.send(_text(answer))
    except StopIteration as end:
        return cast("Outcome", end.value)


def _function(namespace: str, question: Question) -> str:
    return f'"{checked_namespace(namespace)}".{question.function}'


def _text(answer: object) -> str | None:
    return None if answer is None else str(answer)


def _asks(connection: Any, *, awaits: bool) -> _Asks:
    families = {base.__module__.partition(".")[0] for base in type(connection).__mro__}
    if "sqlalchemy" in families and hasattr(connection, "execute"):
        asynchronous = any("ext.asyncio" in base.__module__ for base in type(connection).__mro__)
        found = _of_sqlalchemy_async if asynchronous else _of_sqlalchemy
    elif "asyncpg" in families and hasattr(connection, "fetchval"):
        asynchronous, found = True, _of_asyncpg
    elif "psycopg" in families and inspect.iscoroutinefunction(
        getattr(connection, "execute", None)
    ):
        asynchronous, found = True, _of_psycopg_async
    elif hasattr(connection, "cursor") and not families & {"sqlalchemy", "asyncpg"}:
        asynchronous, found = False, _of_db_api
    else:
        raise InvalidSetting(
            f"connection={_named(connection)} is no connection: give one of psycopg, psycopg2,"
            " asyncpg, SQLAlchemy (or a Session) or Django, with the transaction open on it"
        )
    if asynchronous and not awaits:
        raise InvalidSetting(
            f"connection={_named(connection)} is one of asyncio: give it to an AsyncScheduler"
        )
    if awaits and not asynchronous:
        raise InvalidSetting(
            f"connection={_named(connection)} would block the loop: give it to a Scheduler, or give"
            " a connection of asyncio"
        )
    return found(connection)


def _of_db_api(connection: Any) -> _Asks:
    """psycopg, psycopg2, Django."""

    def ask(function: str, argument: str) -> object:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [argument])
            return _only(cursor.fetchone())

    return ask


def _of_psycopg_async(connection: Any) -> _Asks:
    async def ask(function: str, argument: str) -> object:
        async with connection.cursor() as cursor:
            await cursor.execute(f"SELECT {function}(%s)", [argument])
            return _only(await cursor.fetchone())

    return ask


def _of_asyncpg(connection: Any) -> _Asks:
    async def ask(function: str, argument: str) -> object:
        return await connection.fetchval(f"SELECT {function}($1)", argument)

    return ask


def _of_sqlalchemy(connection: Any) -> _Asks:
    from sqlalchemy import text

    def ask(function: str, argument: str) -> object:
        statement = text(f"SELECT {function}(:asked)")
        return connection.execute(statement, {"asked": argument}).scalar_one()

    return ask


def _of_sqlalchemy_async(connection: Any) -> _Asks:
    from sqlalchemy import text

    async def ask(function: str, argument: str) -> object:
        statement = text(f"SELECT {function}(:asked)")
        return (await connection.execute(statement, {"asked": argument})).scalar_one()

    return ask


def _only(row: Any) -> object:
    """The one value of a row, whatever kind of rows the client has chosen."""
    if isinstance(row, Mapping):
        return next(iter(cast("Mapping[str, object]", row).values()))
    return row[0]


@contextmanager
def _translated(namespace: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        state = next(_sqlstates(error), "")
        said = " ".join(str(error).split())
        if state in _MISSING:
            raise SchemaMissing(
                f"the connection's database has no schema {namespace!r} of this release ({said}):"
                " run `horolog migrate` on that database"
            ) from error
        if state in _REFUSED or state.startswith(("08", "57P")):
            raise StoreUnavailable(f"Postgres refuses: {said}") from error
        raise


def _sqlstates(error: BaseException | None) -> Iterator[str]:
    """The states that an error, and what it wraps, has: each driver puts it elsewhere."""
    for _ in range(_MAX_DEPTH):
        if error is None or isinstance(error, HorologError):
            return
        for name in ("sqlstate", "pgcode"):
            if isinstance(state := getattr(error, name, None), str):
                yield state
        error = cast("BaseException | None", getattr(error, "orig", None) or error.__cause__)


def _named(connection: object) -> str:
    kind = type(connection)
    return f"<{kind.__module__}.{kind.__qualname__}>"
