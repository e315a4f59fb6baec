"""The library's subscription, woken by the notification that every append sends."""

from collections.abc import Sequence
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from eventsourcing.persistence import ListenNotifySubscription
from psycopg import sql

from horolog.domain.errors import SchemaMissing, StoreUnavailable
from horolog.infrastructure.postgres.database import Database

if TYPE_CHECKING:
    from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder

    Following = ListenNotifySubscription[PostgresLogRecorder]
else:
    Following = ListenNotifySubscription

_LOOK_S = 0.2
_RECONNECT_S = 0.5


def _listen_to(namespace: str) -> sql.Composed:
    return sql.SQL("LISTEN {}").format(sql.Identifier(f"{namespace}_log"))


class PostgresLogSubscription(Following):
    """Events as they are appended, none passed over.

    The library pulls before it listens, so an event that comes in between waits for the next one;
    and it ends when its connection does. Ours looks again once it listens, each time it has to
    connect anew.
    """

    def __init__(
        self,
        recorder: "PostgresLogRecorder",
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        self._stopped = Event()
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._listen_thread = Thread(target=self._listen, daemon=True)
        self._listen_thread.start()

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._listen_thread.join()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen_once(self._recorder.database)
            except SchemaMissing as error:
                self._thread_error = self._thread_error or error
                self.stop()
            except StoreUnavailable:
                self._stopped.wait(_RECONNECT_S)

    def _listen_once(self, database: Database) -> None:
        with database.session() as connection:
            connection.execute(_listen_to(database.namespace))
            self._has_been_notified.set()
            while not self._stopped.is_set():
                for _ in connection.notifies(timeout=_LOOK_S, stop_after=1):
                    self._has_been_notified.set()
