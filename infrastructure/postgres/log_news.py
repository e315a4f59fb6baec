"""Waiting for the log to grow: LISTEN, with a look now and then in case a notification was lost."""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from psycopg import sql

from horolog.infrastructure.postgres.database import Connection, Database


class PostgresLogNews:
    """As :class:`horolog.application.queries.ports.WaitsForEvents` promises.

    Holds one connection of its own. When that breaks, ``wait`` raises ``StoreUnavailable`` and the
    next call connects anew. For one thread.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stack = ExitStack()
        self._connection: Connection | None = None

    def wait(self, timeout_s: float) -> None:
        if self._connection is None:
            # What was appended before we listen is not told: return at once and let the caller
            # look.
            self._connect()
            return
        try:
            with self._database.translated():
                for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
                    pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection = None
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connect(self) -> None:
        connection = self._stack.enter_context(self._database.session())
        with self._database.translated():
            channel = sql.Identifier(f"{self._database.namespace}_log")
            connection.execute(sql.SQL("LISTEN {}").format(channel))
        self._connection = connection
