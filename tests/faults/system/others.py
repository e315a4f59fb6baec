"""Other users of the same Postgres: who take every connection, and who keep transactions open."""

from contextlib import suppress

import psycopg
from psycopg import sql

MOST = 500
"""More connections than the server of a test allows."""


class Others:
    """``url`` is the database, ``namespace`` the one whose rows they are interested in.

    What they hold is given back by :meth:`leave`; each method returns quietly where Postgres is
    away.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self._url = url
        self._namespace = namespace
        self._held: list[psycopg.Connection] = []

    def take_all_connections(self) -> int:
        """Opens as many as there are, and ends those of all others in turn, so that whoever needs
        one has to wait; how many were taken."""
        taken = self._open_all()
        if taken:
            with suppress(psycopg.Error):
                self._held[-1].execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE backend_type = 'client backend' AND application_name <> 'others'"
                )
            taken += self._open_all()
        return taken

    def read_for_long(self) -> None:
        """A report in one snapshot: it holds back what VACUUM may take away."""
        self._in_transaction(
            sql.SQL("SELECT count(*) FROM {}, pg_sleep(0)").format(self._table("next_runs")),
            isolation=psycopg.IsolationLevel.REPEATABLE_READ,
        )

    def lock_rows(self, most: int) -> None:
        """Rows of the index that somebody looks at FOR UPDATE, and does not let go."""
        self._in_transaction(
            sql.SQL("SELECT id FROM {} ORDER BY due_at LIMIT {} FOR UPDATE SKIP LOCKED").format(
                self._table("next_runs"), most
            )
        )

    def leave(self) -> None:
        for connection in self._held:
            connection.close()
        self._held.clear()

    def _table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self._namespace, name)

    def _in_transaction(
        self, statement: sql.Composed, isolation: psycopg.IsolationLevel | None = None
    ) -> None:
        with suppress(psycopg.Error):
            connection = self._open()
            connection.isolation_level = isolation
            connection.execute(statement)

    def _open_all(self) -> int:
        before = len(self._held)
        with suppress(psycopg.Error):
            while len(self._held) < MOST:
                self._open()
        return len(self._held) - before

    def _open(self) -> psycopg.Connection:
        connection = psycopg.connect(self._url, connect_timeout=2, application_name="others")
        self._held.append(connection)
        return connection
