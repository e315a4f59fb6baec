"""A migrated namespace, recorders on it, and a proxy that cuts connections after the commit."""

import socket
from collections.abc import Callable, Generator
from threading import Thread

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate


@pytest.fixture
def database(database_url: str, namespace: str) -> Generator[Database]:
    database = Database(database_url, namespace, size=12)
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def recorder(database: Database) -> PostgresLogRecorder:
    return PostgresLogRecorder(database)


class CuttingProxy:
    """Stands before Postgres; once :meth:`cut_the_next_answer` was called it forwards what a client
    sends, waits until the server has done it, and closes the connection instead of answering."""

    def __init__(self, conninfo: str) -> None:
        params = conninfo_to_dict(conninfo)
        self._target = f"{params['host']}/.s.PGSQL.{params['port']}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed = False
        self.cuts = 0
        self.url = make_conninfo(
            conninfo, host="127.0.0.1", port=self._listener.getsockname()[1], gssencmode="disable"
        )
        Thread(target=self._accept, daemon=True).start()

    def cut_the_next_answer(self) -> None:
        self._armed = True

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            for pump in (self._requests, self._answers):
                Thread(target=pump, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        _forward(client, server, lambda: True)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        def let_through() -> bool:
            if not self._armed:
                return True
            self._armed = False
            self.cuts += 1
            return False

        _forward(server, client, let_through)


def _forward(source: socket.socket, target: socket.socket, let_through: Callable[[], bool]) -> None:
    """Copies one direction until an end, or until something is not let through; closes both."""
    try:
        while data := source.recv(65_536):
            if not let_through():
                break
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


@pytest.fixture
def proxy(database_url: str) -> Generator[CuttingProxy]:
    proxy = CuttingProxy(database_url)
    yield proxy
    proxy.close()
