"""Transactions of handlers: Succeeded is appended by the very transaction that holds the effect.

What is to be appended is put down in the transaction and appended by the server when the COMMIT
arrives (migrations/0005): the log lock is never held while a handler, its event loop or the network
takes its time.

Sync and async connections of psycopg differ in their ``await`` only, so each sequence is written
once, as a generator of calls, and driven by whichever of the two runs the handler.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.rows import TupleRow

from horolog.application.decision import Decision
from horolog.application.log import Verdict
from horolog.application.worker.transactions import CommitUnknown
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.idle_connections import IdleConnections
from horolog.infrastructure.postgres.log import REFUSED_AT_COMMIT, PostgresLog
from horolog.infrastructure.postgres.packing import ARGUMENTS

T = TypeVar("T")
_Steps = Generator[Callable[[], Any], Any, T]

# The handler's own statements run under the server's defaults, the append under ours.
_BEFORE_APPEND = sql.SQL(
    "SELECT set_config('lock_timeout', '10s', true),"
    " set_config('statement_timeout', '60s', true),"
    " set_config('plan_cache_mode', 'force_generic_plan', true)"
)


class PostgresTransactions:
    """As :class:`horolog.application.worker.transactions.Transactions` promises.

    Connections are made when they are needed: as many as handlers run in transactions at once.
    """

    def __init__(self, database: Database, log: PostgresLog) -> None:
        self._log = log
        values = ", ".join(["%b"] * ARGUMENTS)
        self._put_down = database.sql(f"INSERT INTO :schema.at_commit VALUES ({values})")
        self._options = database.connect_options
        self._idle = IdleConnections[Connection[TupleRow]]()
        self._async_idle = IdleConnections[AsyncConnection[TupleRow]]()

    @contextmanager
    def begin(self) -> Generator["_Transaction"]:
        with _connecting():
            connection = self._idle.take() or Connection[TupleRow].connect(**self._options)
        try:
            transaction = _Transaction(connection, self._log, self._put_down)
            _drive(transaction.enter())
            try:
                yield transaction
            except BaseException as error:
                _drive(transaction.leave(error))
                raise
            _drive(transaction.leave(None))
        finally:
            self._idle.give(connection)

    @asynccontextmanager
    async def begin_async(self) -> AsyncGenerator["_AsyncTransaction"]:
        with _connecting():
            connection = self._async_idle.take()
            if connection is None:
                connection = await AsyncConnection[TupleRow].connect(**self._options)
        try:
            transaction = _AsyncTransaction(connection, self._log, self._put_down)
            await _drive_async(transaction.enter())
            try:
                yield transaction
            except BaseException as error:
                await _drive_async(transaction.leave(error))
                raise
            await _drive_async(transaction.leave(None))
        finally:
            self._async_idle.give(connection)

    def close(self) -> None:
        self._idle.close()
        self._async_idle.close()


@contextmanager
def _connecting() -> Generator[None]:
    """Only connecting is ours to translate; a handler's errors stay its own."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise StoreUnavailable(f"Postgres is away: {error}") from error


class _Steering:
    """One transaction, as sequences of calls on its connection."""

    def __init__(self, connection: Any, log: PostgresLog, put_down: sql.Composed) -> None:
        self.connection = connection
        self._log = log
        self._put_down = put_down
        self._context: Any = connection.transaction()
        self._open = False

    def enter(self) -> _Steps[None]:
        enter = getattr(self._context, "__aenter__", None) or self._context.__enter__
        yield enter
        self._open = True

    def leave(self, error: BaseException | None) -> _Steps[None]:
        """Rolls back what was not committed; the connection may be broken by now."""
        if self._open:
            yield from self._close(psycopg.Rollback(self._context) if error is None else error)

    def append(self, decision: Decision) -> _Steps[Verdict]:
        connection = self.connection
        arguments = self._log.arguments([decision])
        yield lambda: connection.execute(_BEFORE_APPEND)
        yield lambda: connection.execute(self._put_down, arguments)
        try:
            yield from self._close(None)
        except psycopg.Error as error:
            if error.sqlstate == REFUSED_AT_COMMIT:
                return "conflict"
            self._unless_answered(error)
            raise
        return "accepted"

    @staticmethod
    def _unless_answered(error: psycopg.Error) -> None:
        """Raises ``CommitUnknown`` unless the server has answered, and the answer is no."""
        if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
            raise CommitUnknown(f"the connection broke at the commit: {error}") from error

    def _close(self, error: BaseException | None) -> _Steps[None]:
        self._open = False
        leave = getattr(self._context, "__aexit__", None) or self._context.__exit__
        kind = None if error is None else type(error)
        yield lambda: leave(kind, error, None)


class _Transaction(_Steering):
    def succeed(self, decision: Decision) -> Verdict:
        return _drive(self.append(decision))


class _AsyncTransaction(_Steering):
    async def succeed(self, decision: Decision) -> Verdict:
        return await _drive_async(self.append(decision))


def _drive(steps: _Steps[T]) -> T:
    """Runs a sequence on a sync connection."""
    try:
        call = next(steps)
        while True:
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - the sequence decides
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        return end.value


async def _drive_async(steps: _Steps[T]) -> T:
    """Runs the same sequence on an async connection."""
    try:
        call = next(steps)
        while True:
            try:
                result = await call()
            except BaseException as error:  # noqa: BLE001 - the sequence decides
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        return end.value
