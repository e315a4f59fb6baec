"""Connections that are open and not in use: kept for the next user, unless the server has gone.

A restart of Postgres closes every connection of a process. Whoever then got one of them would fail
though Postgres is back: a client's first command, an attempt of a transactional handler. So none is
given out whose socket has anything to say: while nobody asks, a server speaks only to take its
leave (or of settings that changed, and then a new connection knows them as well). To find that out
costs a system call, not a round trip.

Connecting is left to the user, in its own thread or task: it hears at once, and why, that Postgres
is away, and the first one that tries after its return succeeds. (psycopg's pool connects in the
background and lets those who wait for it wait until their time is over.)
"""

import select
import sys
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

from psycopg import AsyncConnection, Connection
from psycopg.pq import ConnStatus, TransactionStatus
from psycopg.rows import TupleRow

C = TypeVar("C", Connection[TupleRow], AsyncConnection[TupleRow])


class IdleConnections(Generic[C]):
    """The newest first; shared by threads. It sets no limit: it holds what was opened."""

    def __init__(self) -> None:
        self._idle: deque[C] = deque()
        self._closed = False

    def take(self) -> C | None:
        """One whose server is there, as far as this side can know; ``None`` if there is none."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if _is_usable(connection):
                return connection
            _close(connection)

    def give(self, connection: C) -> None:
        """Keeps a connection for the next user; one that is broken or within a transaction is
        closed, and so is each that comes after ``close``."""
        if self._closed or not _is_usable(connection):
            _close(connection)
            return
        self._idle.append(connection)
        if self._closed:  # by another thread, a moment ago
            self.close()

    def close(self) -> None:
        """Closes what is idle; what is in use is closed when it is given back."""
        self._closed = True
        while self._idle:
            try:
                _close(self._idle.pop())
            except IndexError:  # two were closing
                return

    def __del__(self) -> None:
        self.close()


def _close(connection: Connection[TupleRow] | AsyncConnection[TupleRow]) -> None:
    closing = connection.close()
    if closing is not None:
        # There is nothing to await in it: libpq says goodbye and waits for nobody.
        with suppress(StopIteration):
            closing.send(None)


def _is_usable(connection: Connection[TupleRow] | AsyncConnection[TupleRow]) -> bool:
    state = connection.pgconn
    return (
        state.status == ConnStatus.OK
        and state.transaction_status == TransactionStatus.IDLE
        and not _has_something_to_say(state.socket)
    )


def _has_something_to_say(socket: int) -> bool:
    if sys.platform == "win32":
        return bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()  # any number of open files, unlike select
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
