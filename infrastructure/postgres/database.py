"""Connections to one namespace of a Postgres database, and what their failures mean to us.

A stalled writer must not stop the others for long, so every session has time-outs for locks,
statements and idle transactions, and no answer is waited for without end. Drivers' exceptions are
translated here and nowhere else.
"""

import re
from collections.abc import Generator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from horolog.domain.errors import (
    InvalidSetting,
    OutOfRange,
    SchemaMissing,
    StoreUnavailable,
    SubjectForgotten,
)
from horolog.infrastructure.postgres.bounded import BoundedConnection
from horolog.infrastructure.postgres.idle_connections import IdleConnections
from horolog.infrastructure.postgres.poolers import is_direct, refuse_shared

Row = tuple[Any, ...]
Connection = psycopg.Connection[TupleRow]

NAMESPACE_PATTERN = re.compile(r"[a-z_][a-z0-9_]{0,39}")

ANSWER_S = 66.0
"""How long the answer to an ordinary statement is waited for; the server gives up before that."""

SESSION = {
    # Longer than any honest append: the holder of the log lock is never interrupted by it, only
    # those who wait behind a stalled one.
    "lock_timeout": "10s",
    "statement_timeout": "60s",
    # A writer that stalls inside a transaction loses its locks after this.
    "idle_in_transaction_session_timeout": "5s",
    "timezone": "UTC",
    # Batches differ in size only: a plan made once serves all of them.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}


FORGOTTEN = "HR002"
"""The SQLSTATE of a batch with a job whose subject was forgotten (migrations/0009)."""


def checked_namespace(namespace: str) -> str:
    """The namespace, or ``InvalidSetting``: it names a Postgres schema and a NATS subject."""
    if not NAMESPACE_PATTERN.fullmatch(namespace):
        raise InvalidSetting(
            f"namespace {namespace!r} cannot be used: it takes lower-case letters, digits and _,"
            " begins with a letter or _, and has at most 40 characters"
        )
    return namespace


class Database:
    """A few connections, shared by threads; ``size`` is the most that are open at once.

    ``answer_s``: how long an answer is waited for before the connection is taken for dead. Shorter:
    a network that swallows everything is noticed sooner. Longer than any statement may take.
    Nothing connects before the first use. Closing waits for nobody.
    """

    def __init__(
        self,
        url: str,
        namespace: str,
        *,
        size: int = 4,
        connect_timeout_s: float = 5.0,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.namespace = checked_namespace(namespace)
        self.url = url
        self._timeout_s = connect_timeout_s
        self._answer_s = answer_s
        try:
            kwargs: dict[str, Any] = dict(conninfo_to_dict(url))
        except (psycopg.ProgrammingError, UnicodeDecodeError) as error:
            said = _one_line(error) if isinstance(error, psycopg.Error) else "it is not UTF-8"
            why = said.partition('"')[0].rstrip(": ")
            # Not even as its cause: what libpq quotes may be a part of the password.
            raise InvalidSetting(
                f"the database URL cannot be read ({why}): it looks like"
                " postgresql://user@host:5432/database, with % # / ? @ of a password written as"
                " %25 %23 %2F %3F %40"
            ) from None
        kwargs.setdefault("application_name", f"horolog/{namespace}")
        kwargs.setdefault("connect_timeout", max(2, round(connect_timeout_s)))
        kwargs.setdefault("keepalives_idle", 10)
        kwargs.setdefault("keepalives_interval", 5)
        kwargs.setdefault("keepalives_count", 3)
        # The same for what was sent and nobody has acknowledged: keepalives are silent then.
        kwargs.setdefault("tcp_user_timeout", 25_000)
        # After a failover a pooled connection to the demoted node would refuse every write.
        kwargs.setdefault("target_session_attrs", "read-write")
        self._kwargs: dict[str, Any] = {**kwargs, "autocommit": True, "prepare_threshold": 0}
        self._free = BoundedSemaphore(size)
        self._idle = IdleConnections[Connection]()
        self._has_own_sessions = False

    @property
    def connect_options(self) -> dict[str, Any]:
        """What the driver is to be called with, for connections of another kind or pool."""
        return dict(self._kwargs)

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """A connection in autocommit mode; its errors come out as ours.

        Raises ``StoreUnavailable`` (a service that is away, a read-only node, a time-out),
        ``SchemaMissing``, or ``OutOfRange`` for a value that cannot be kept or read.
        """
        if not self._free.acquire(timeout=self._timeout_s):
            raise StoreUnavailable(f"no connection was free within {self._timeout_s:g} s")
        try:
            with self.translated(), _out_of_range():
                connection = self._idle.take() or self._connect()
                try:
                    yield connection
                except psycopg.errors.ReadOnlySqlTransaction:
                    connection.close()
                    raise
                finally:
                    self._idle.give(connection)
        finally:
            self._free.release()

    def query(self, statement: sql.SQL | sql.Composed, params: Any = None) -> list[Row]:
        """All rows of one statement, in the binary format."""
        with self.connection() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(statement, params)
            return cursor.fetchall() if cursor.description else []

    def sql(self, text: str) -> sql.Composed:
        """The statement with ``:schema`` as this namespace's schema, quoted.

        ``:literal`` is the same name as a string, ``:positions`` the sequence of the log.
        """
        schema = sql.Identifier(self.namespace)
        positions = f'"{self.namespace}".positions'
        named: dict[str, sql.Composable] = {
            ":schema": schema,
            ":literal": sql.Literal(self.namespace),
            ":positions": sql.Literal(positions),
        }
        parts = re.split(r"(:schema|:literal|:positions)\b", text)
        return sql.Composed([named.get(part) or sql.SQL(part) for part in parts])  # pyright: ignore[reportArgumentType]

    @contextmanager
    def session(self) -> Generator[BoundedConnection]:
        """A connection of one's own outside the pool, for listening and for long reads: its answers
        are waited for as long as it takes, unless its user says otherwise."""
        with self.translated():
            connection = self._connect()
            connection.answer_s = None
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def translated(self) -> Generator[None]:
        """Turns the driver's exceptions into ours."""
        try:
            yield
        except (
            psycopg.errors.InvalidSchemaName,
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedFunction,
        ) as error:
            raise SchemaMissing(
                f"the database has no schema {self.namespace!r} of this release"
                f" ({_one_line(error)}): run `horolog migrate`, or, where a newer release has"
                " done so, upgrade this process"
            ) from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if error.sqlstate == FORGOTTEN:
                raise SubjectForgotten(
                    f"subject {error.diag.message_primary!r} was forgotten: no job can carry data"
                    " of it again"
                ) from None
            raise StoreUnavailable(f"Postgres is away: {_one_line(error)}") from error
        except (
            psycopg.errors.ReadOnlySqlTransaction,
            psycopg.errors.InsufficientPrivilege,
        ) as error:
            raise StoreUnavailable(f"Postgres refuses: {_one_line(error)}") from error

    def close(self) -> None:
        self._idle.close()

    def _connect(self) -> BoundedConnection:
        connection = self._opened()
        try:
            pid = _configure(connection, self._answer_s)
            if not self._has_own_sessions and not is_direct(connection, pid):
                with self._opened() as other:
                    refuse_shared(connection, other)
            self._has_own_sessions = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _opened(self) -> BoundedConnection:
        try:
            connection = BoundedConnection.connect(**self._kwargs)
        except psycopg.OperationalError as error:
            raise StoreUnavailable(f"Postgres cannot be reached: {_one_line(error)}") from error
        connection.answer_s = self._answer_s
        return connection


@contextmanager
def _out_of_range() -> Generator[None]:
    """A statement of ours is right: what the server or the driver refuses then is a value."""
    try:
        yield
    except (psycopg.DataError, psycopg.errors.CheckViolation) as error:
        raise OutOfRange(
            f"Postgres cannot keep or give back a value: {_one_line(error)}"
        ) from error


def _configure(connection: Connection, answer_s: float) -> int:
    """Gives the session its settings; the number of the server's process."""
    chosen = dict(SESSION)
    if answer_s < ANSWER_S:
        chosen["statement_timeout"] = f"{answer_s * 900:.0f}ms"
        chosen["lock_timeout"] = f"{min(10.0, answer_s * 0.8) * 1000:.0f}ms"
    with connection.cursor() as cursor:
        settings = sql.SQL(", ").join(
            sql.SQL("set_config({}, {}, false)").format(name, value)
            for name, value in chosen.items()
        )
        row = cursor.execute(
            sql.SQL("SELECT pg_backend_pid(), ") + settings, prepare=False
        ).fetchone()
    assert row is not None
    return int(row[0])


def _one_line(error: psycopg.Error) -> str:
    """The server's message without its details and context, which quote what users wrote."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split())
