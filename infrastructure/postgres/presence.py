"""Who lives: a process announces itself, with what it can do, for as long as it keeps doing so."""

from typing import Any

from psycopg.types.json import Jsonb

from horolog.infrastructure.postgres.compatibility import known_schema
from horolog.infrastructure.postgres.database import Database

# The primary key of instances, an unlogged table.
_ANNOUNCE = "SELECT :schema.announce(%(instance)s, %(role)s, %(for_s)s, %(details)s)"
_LEAVE = "SELECT :schema.retire(%(instance)s, %(role)s)"


class PostgresPresence:
    """As :class:`horolog.application.worker.heartbeats.AnnouncesWorker` promises."""

    def __init__(self, database: Database, instance: str, role: str) -> None:
        self._database = database
        self._instance = instance
        self._role = role
        self._schema = known_schema()
        self._announce = database.sql(_ANNOUNCE)
        self._leave = database.sql(_LEAVE)

    def announce(self, details: dict[str, Any], for_s: float) -> None:
        self._database.query(
            self._announce,
            {
                "instance": self._instance,
                "role": self._role,
                "for_s": float(for_s),
                "details": Jsonb({**details, "schema": self._schema}),
            },
        )

    def leave(self) -> None:
        self._database.query(self._leave, {"instance": self._instance, "role": self._role})
