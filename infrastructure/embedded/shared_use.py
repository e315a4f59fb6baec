"""Using a home's servers together with others: the last who leaves stops them.

`horolog dev` in two terminals of one directory shares one Postgres and one NATS. Each holds a
shared lock on the home while it works; on leaving it asks for that lock alone. Who gets it was the
last, and keeps it until the servers have stopped, so that a newcomer waits and starts them again.
Without this the first to leave would take the servers from the other.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from horolog.infrastructure.embedded.failures import EmbeddedHomeFailed
from horolog.infrastructure.embedded.home import Home, open_lock
from horolog.infrastructure.embedded.servers import EmbeddedServers

_USERS = "users"


@contextmanager
def in_use(path: Path, *, postgres: bool = True, nats: bool = True) -> Generator[EmbeddedServers]:
    """Starts or finds the servers of a home; at the end stops them, unless others use them.

    ``postgres`` and ``nats`` say which are wanted. Raises ``EmbeddedServerFailed``.
    """
    descriptor = _users_lock(Home(path))
    servers = EmbeddedServers(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if postgres:
            servers.start_postgres()
        if nats:
            servers.start_nats()
        yield servers
    finally:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody else is still there
        else:
            servers.stop()
        finally:
            os.close(descriptor)


def _users_lock(home: Home) -> int:
    try:
        home.create()
        return open_lock(home.path / _USERS, owner=home.owner)
    except OSError as error:
        raise EmbeddedHomeFailed(
            f"the home {home.path} of the embedded servers cannot be used: {error};"
            " name another with HOROLOG_HOME"
        ) from error
