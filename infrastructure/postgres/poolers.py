"""A pooler between us and Postgres: one that shares sessions among transactions is refused.

LISTEN, the time-outs of a session, prepared statements and the advisory locks of migrations and
rebuilds belong to a session. Behind pgbouncer's ``pool_mode = transaction`` they would belong to
whoever comes next: a scanner would hear nothing, and a time-out that was meant for one statement
would end another's. Whoever gives a command within a transaction of its own (``connection=``) is
free to come through any pooler: that is one statement, and no session is asked for.
"""

import psycopg

from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres.bounded import BoundedConnection

_TRIES = 5

_PID = "SELECT pg_backend_pid()"


def is_direct(connection: BoundedConnection, pid: int) -> bool:
    """Whether the session that answers (``pid``) is the one that we logged in to: a pooler makes up
    the number that it greets with."""
    return connection.info.backend_pid == pid


def refuse_shared(ours: BoundedConnection, other: BoundedConnection) -> None:
    """Raises ``InvalidSetting`` where transactions of ``other`` get the session of ``ours``."""
    if _shares(ours, other):
        raise InvalidSetting(
            "the database URL leads to a pooler that shares sessions among transactions, such as"
            " pgbouncer with pool_mode=transaction, and Horolog needs sessions of its own (LISTEN,"
            " advisory locks, time-outs): name the server itself, or give its user"
            " pool_mode=session"
        )


def _shares(ours: BoundedConnection, other: BoundedConnection) -> bool:
    for _ in range(_TRIES):
        before = _pid(ours)
        try:
            other.execute("BEGIN", prepare=False)
            # Ours is asked only while it cannot be in the way: a pool of one would wait for itself.
            if _pid(other) == before or _pid(ours) != before:
                return True
            other.execute("COMMIT", prepare=False)
        except (psycopg.errors.ProtocolViolation, psycopg.errors.FeatureNotSupported):
            return True  # statement pooling knows no transactions
    return False


def _pid(connection: BoundedConnection) -> int:
    row = connection.execute(_PID, prepare=False).fetchone()
    assert row is not None
    return int(row[0])
