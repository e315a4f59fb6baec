"""Leases and heartbeats in Postgres: one round trip for a renewal, by the database's clock.

The lease is a row, not a session: it survives a recycled connection, and ends by itself when its
holder is gone. Elections are not here: they are appended to the log like every other decision.
"""

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from horolog.application.scanner.leadership import Lease, View
from horolog.domain.partition import PartitionState
from horolog.infrastructure.postgres.arrays import BigInts, Ints, SmallInts
from horolog.infrastructure.postgres.compatibility import known_schema
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.threaded import DedicatedThread

# The primary keys of instances and partitions; row locks on what is renewed, none waited for.
_RENEW = """
    SELECT r.*, (
        SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float
        FROM :schema.partitions
        WHERE instance <> %(instance)s AND lease_until >= clock_timestamp()
    )
    FROM :schema.renew_leases(
        %(instance)s, %(role)s, %(lease_s)s, %(details)s, %(partitions)b, %(tokens)b
    ) r
"""
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_LEAVE = "SELECT :schema.leave(%s)"
# The primary key of partitions; row locks, none waited for.
_MARK = "SELECT :schema.mark_published(%s, %b, %b, %b)"


class PostgresLeases:
    """As :class:`KeepsLeases` and :class:`MarksPublished` promise; its calls run one by one."""

    def __init__(self, database: Database, thread: DedicatedThread, *, role: str) -> None:
        self._database = database
        self._thread = thread
        self._role = role
        self._schema = known_schema()
        self._renew = database.sql(_RENEW)
        self._leave = database.sql(_LEAVE)
        self._now = database.sql(_NOW)
        self._mark = database.sql(_MARK)

    async def renew(
        self,
        instance: str,
        tokens: Mapping[int, int],
        *,
        lease_s: float,
        details: Mapping[str, object],
    ) -> View:
        partitions, held = list(tokens.keys()), list(tokens.values())
        params = {
            "instance": instance,
            "role": self._role,
            "lease_s": lease_s,
            "details": Jsonb({**details, "schema": self._schema}),
            "partitions": SmallInts(partitions),
            "tokens": Ints(held),
        }
        moment_us, alive, *columns, others_end_in_s = (
            await self._thread.call(self._database.query, self._renew, params)
        )[0]
        leases = [
            Lease(PartitionState(stream, partition, version, leader, token), running, published)
            for partition, stream, version, leader, token, running, published in zip(
                *columns, strict=True
            )
        ]
        return View(moment_us, alive, leases, others_end_in_s)

    async def leave(self, instance: str) -> None:
        await self._thread.call(self._database.query, self._leave, (instance,))

    async def now_us(self) -> int:
        return (await self._thread.call(self._database.query, self._now))[0][0]

    async def mark_published(
        self, instance: str, tokens: Mapping[int, int], positions: Mapping[int, int]
    ) -> None:
        partitions = list(positions)
        params = (
            instance,
            SmallInts(partitions),
            Ints([tokens[partition] for partition in partitions]),
            BigInts([positions[partition] for partition in partitions]),
        )
        await self._thread.call(self._database.query, self._mark, params)
