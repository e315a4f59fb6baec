"""A look at each of the two services: what there was to see, or why nothing was."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from horolog.application.health import QueueHealth, StoreHealth
from horolog.domain.errors import HorologError
from horolog.infrastructure.nats.health import NatsHealth
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.health import PostgresHealth
from horolog.infrastructure.postgres.namespace import check_place
from horolog.interface.settings import Settings

T = TypeVar("T")


def look_at_store(settings: Settings) -> tuple[StoreHealth | None, HorologError | None]:
    """Postgres, as the namespace's tables tell it."""

    def look() -> StoreHealth:
        database = Database(settings.database_url(), settings.namespace)
        try:
            if settings.place.logs > 1:
                check_place(database, settings.place)
            return PostgresHealth(database).store_health()
        finally:
            database.close()

    return _looked_at(look)


def look_at_queue(settings: Settings) -> tuple[QueueHealth | None, HorologError | None]:
    """NATS and the ready stream."""
    return _looked_at(
        lambda: asyncio.run(
            NatsHealth(settings.nats_url(), settings.place.queue(settings.namespace)).queue_health()
        )
    )


def _looked_at(look: Callable[[], T]) -> tuple[T | None, HorologError | None]:
    try:
        return look(), None
    except HorologError as error:
        return None, error
