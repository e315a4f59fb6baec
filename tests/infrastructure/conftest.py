"""A migrated namespace, and a proxy that cuts connections after the commit."""

import socket
from collections.abc import Callable, Generator
from functools import partial
from select import select
from threading import Thread

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate


@pytest.fixture
def database(database_url: str, namespace: str) -> Generator[Database]:
    database = Database(database_url, namespace, size=12)
    migrate(database)
    yield database
    database.close()


class CuttingProxy:
    """Stands before Postgres and forwards. Once :meth:`cut_an_answer` was called it waits until the
    server has done what a client asked for, and then closes the connection instead of answering."""

    def __init__(self, conninfo: str) -> None:
        params = conninfo_to_dict(conninfo)
        self._target = f"{params['host']}/.s.PGSQL.{params['port']}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[Thread] = []
        self._answers_until_cut = 0
        self.cuts = 0
        self.url = make_conninfo(
            conninfo, host="127.0.0.1", port=self._listener.getsockname()[1], gssencmode="disable"
        )
        self._run(self._accept)

    def cut_an_answer(self, *, after: int = 0) -> None:
        """The next one, or the one after as many that are let through."""
        self._answers_until_cut = after + 1

    def close(self) -> None:
        """Takes no more connections, and waits for the end of those that there are."""
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)

    def _run(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with self._listener:
            while True:
                try:
                    client, _ = self._listener.accept()
                except OSError:
                    return
                self._run(partial(self._forward, client))

    def _forward(self, client: socket.socket) -> None:
        """Copies both directions until either ends, or until an answer is to be cut off."""
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._target)
            while True:
                for source in select([client, server], [], [])[0]:
                    data = _received(source)
                    if source is server and self._is_cut():
                        return
                    if not data or not _sent(server if source is client else client, data):
                        return

    def _is_cut(self) -> bool:
        if self._answers_until_cut == 0:
            return False
        self._answers_until_cut -= 1
        self.cuts += self._answers_until_cut == 0
        return self._answers_until_cut == 0


def _sent(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65_536)
    except OSError:
        return b""


@pytest.fixture
def proxy(database_url: str) -> Generator[CuttingProxy]:
    proxy = CuttingProxy(database_url)
    yield proxy
    proxy.close()
