"""How far a follower has come, moved in the transaction of what it wrote.

A follower's own tables lie in the same database; its writes and its position commit together or not
at all, so every event is counted once, whatever dies in between.
"""

from collections.abc import Generator
from contextlib import contextmanager

from eventsourcing.persistence import (
    InterfaceError,
    OperationalError,
    Tracking,
    TrackingRecorder,
)
from eventsourcing.utils import retry

from horolog.infrastructure.eventsourcing.failures import library_errors
from horolog.infrastructure.eventsourcing.once import written_once
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.tracking import TRACK, TRACKED

# Reads only: a write whose fate is unknown is not simply done again.
retried = retry((InterfaceError, OperationalError), max_attempts=5, wait=0.2)


class PostgresLogTracking(TrackingRecorder):
    """The ``tracking`` table of a namespace; derive the view of a projection from it.

    ``follower`` tells several projections of one log apart: the library tracks by the name of the
    log that is followed, and here they share a table. ``patience_s`` is how long a write whose
    connection broke is tried again.
    """

    def __init__(self, database: Database, *, follower: str = "", patience_s: float = 5.0) -> None:
        self.database = database
        self.follower = follower
        self.patience_s = patience_s
        self._track = database.sql(TRACK)
        self._tracked = database.sql(TRACKED)

    def insert_tracking(self, tracking: Tracking) -> None:
        """Moves the follower on; raises ``IntegrityError`` where it has been there already."""
        place = (self.name_of(tracking.application_name), tracking.notification_id)

        def there() -> bool | None:
            return self.max_tracking_id(tracking.application_name) == place[1] or None

        def move() -> bool:
            return bool(self.database.query(self._track, place))

        with library_errors():
            written_once(move, there, self.patience_s)

    @contextmanager
    def transaction(self, tracking: Tracking) -> Generator[Connection]:
        """A transaction in which the follower has moved on, for the rows that it writes.

        Raises ``IntegrityError``, before anything is written, where the follower has been there
        already, in this process or another. Nothing is repeated: after an ``OperationalError`` ask
        :meth:`max_tracking_id` how far it has come.
        """
        place = (self.name_of(tracking.application_name), tracking.notification_id)
        with (
            library_errors(),
            self.database.connection() as connection,
            connection.transaction(),
        ):
            connection.execute(self._track, place)
            yield connection

    @retried
    def max_tracking_id(self, application_name: str) -> int | None:
        with library_errors():
            rows = self.database.query(self._tracked, (self.name_of(application_name),))
        return int(rows[0][0]) if rows else None

    def name_of(self, application_name: str) -> str:
        """The key in the table: the follower's name and that of the log that it follows."""
        return f"{self.follower}/{application_name}" if self.follower else application_name

    def close(self) -> None:
        """Closes the connections of this recorder's database."""
        self.database.close()
