"""A projection's place on Postgres: an advisory lock, and transactions that move the place on.

One connection holds the lock and makes the transactions, so whoever has lost the lock cannot write.
Should another have got it all the same (a pooler between us and the server gives a connection to
somebody else), the place is moved by compare-and-set, and the slower one's writes are taken back.
"""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Final

import psycopg

from horolog.application.projecting.place import Overtaken
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.tracking import BEGIN, FORGET, TRACK, TRACKED

_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
# What we set for our own short statements would surprise the user's.
_OWN_STATEMENTS: Final = """
    SELECT set_config('plan_cache_mode', 'auto', false), set_config('jit', 'on', false),
           set_config('idle_in_transaction_session_timeout', '60s', false)
"""


class PostgresPlace:
    """As :class:`horolog.application.projecting.place.KeepsPlace` promises."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._track = database.sql(TRACK)
        self._tracked = database.sql(TRACKED)
        self._begin = database.sql(BEGIN)
        self._forget = database.sql(FORGET)
        self._stack = ExitStack()
        self._connection: Connection | None = None

    def take(self) -> bool:
        self.release()
        connection = self._stack.enter_context(self._database.session())
        self._connection = connection
        with self._database.translated():
            connection.execute(_OWN_STATEMENTS)
            key = f"{self._database.namespace}/projection/{self._name}"
            row = connection.execute(_LOCK, (key,)).fetchone()
        assert row is not None
        return bool(row[0])

    def release(self) -> None:
        self._connection = None
        self._stack.close()

    def position(self, begin: int) -> int:
        with self._database.translated():
            connection = self._taken()
            connection.execute(self._begin, (self._name, begin))
            row = connection.execute(self._tracked, (self._name,)).fetchone()
        assert row is not None
        return row[0]

    @contextmanager
    def standing(self) -> Generator[Connection]:
        with self._transaction() as connection:
            yield connection

    @contextmanager
    def moved(self, position: int) -> Generator[Connection]:
        with self._transaction() as connection:
            try:
                connection.execute(self._track, (self._name, position))
            except psycopg.errors.UniqueViolation as error:
                raise Overtaken(f"{self._name} has been at position {position}") from error
            yield connection

    @contextmanager
    def forget(self) -> Generator[Connection]:
        with self._transaction() as connection:
            connection.execute(self._forget, (self._name,))
            yield connection

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        """What goes wrong in it comes out as it is, unless it is the connection that went."""
        connection = self._taken()
        try:
            with connection.transaction():
                yield connection
        except Exception as error:
            if connection.closed or isinstance(error, psycopg.errors.AdminShutdown):
                raise StoreUnavailable(f"Postgres is away: {error}") from error
            raise

    def _taken(self) -> Connection:
        assert self._connection is not None, "the lock was not taken"
        return self._connection
