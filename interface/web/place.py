"""What every route asks: the scheduler of the namespace, looks at its health, long work.

One place for each server process. A look costs a dozen bounded queries, and many browsers ask for
the same one, so it is kept for some seconds.
"""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

from horolog.application.health import PartitionPlace, QueueHealth, StoreHealth
from horolog.domain.errors import HorologError
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.health import PostgresHealth
from horolog.infrastructure.postgres.partition_map import PostgresPartitionMap
from horolog.interface.cli.looks import look_at_queue
from horolog.interface.scheduler import Scheduler
from horolog.interface.settings import Settings
from horolog.interface.web.long_work import LongWork

T = TypeVar("T")

LOOK_S = 2.0
"""How old the look is that a page shows. Longer: fewer queries. Shorter: a livelier page."""


class Place:
    """Closes its connections with :meth:`close`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.scheduler = Scheduler(settings=settings)
        self.work = LongWork(settings)
        self._database: Database | None = None
        self._lock = threading.Lock()
        self._store = Kept(self._look_at_store, LOOK_S)
        self._queue = Kept(lambda: look_at_queue(settings), LOOK_S)

    def acting_as(self, actor: str) -> Scheduler:
        """The scheduler, with the name of who asks; on the same connections."""
        return self.scheduler.acting_as(actor)

    def store(self) -> tuple[StoreHealth | None, HorologError | None]:
        """The last look at Postgres, or why there was nothing to see."""
        return self._store.get()

    def queue(self) -> tuple[QueueHealth | None, HorologError | None]:
        """The last look at NATS, or why there was nothing to see."""
        return self._queue.get()

    def partitions(self) -> list[PartitionPlace]:
        """Which partition is led by whom."""
        return PostgresPartitionMap(self._connected()).partition_map()

    def close(self) -> None:
        self.work.close()
        self.scheduler.close()
        with self._lock:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    def _look_at_store(self) -> tuple[StoreHealth | None, HorologError | None]:
        try:
            return PostgresHealth(self._connected()).store_health(), None
        except HorologError as error:
            return None, error

    def _connected(self) -> Database:
        with self._lock:
            if self._database is None:
                url, namespace = self.settings.database_url(), self.settings.namespace
                self._database = Database(url, namespace, size=2)
            return self._database


class Kept(Generic[T]):
    """An answer that is fetched again when it is old; whoever comes meanwhile waits for it."""

    def __init__(self, fetch: Callable[[], T], lasts_s: float) -> None:
        self._fetch = fetch
        self._lasts_s = lasts_s
        self._lock = threading.Lock()
        self._found: tuple[float, T] | None = None

    def get(self) -> T:
        with self._lock:
            if self._found is None or monotonic() - self._found[0] > self._lasts_s:
                self._found = (monotonic(), self._fetch())
            return self._found[1]
