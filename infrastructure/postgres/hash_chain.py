"""The hash chain as it is stored, for checking it and for pruning."""

from uuid import UUID

from horolog.application.verify.hash_chain import Link, PrunedLink
from horolog.application.verify.ports import StoredEvent
from horolog.domain.log_events import OccurrencesPruned
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.postgres.rebuild.rebuilds import said_of_log

_END = "SELECT coalesce(max(position_to), 0) FROM :schema.chain"

# The primary key of chain, and chain_pruned_position. Each range that is pruned leaves a link with
# fewer events, so the fewest are the last.
_LINKS = """
    SELECT c.position_to, c.position_from, c.events, c.content, c.digest, p.events, p.content
    FROM (SELECT * FROM :schema.chain WHERE position_to > %(after)s
          ORDER BY position_to LIMIT %(limit)s) c
    LEFT JOIN (
        SELECT DISTINCT ON (position_to) position_to, events, content
        FROM :schema.chain_pruned WHERE position_to > %(after)s AND position_to <= (
            SELECT max(position_to) FROM (
                SELECT position_to FROM :schema.chain WHERE position_to > %(after)s
                ORDER BY position_to LIMIT %(limit)s) page)
        ORDER BY position_to, events) p ON p.position_to = c.position_to
    ORDER BY c.position_to
"""
_PRUNED = """
    SELECT position_to, events, content FROM :schema.chain_pruned
    WHERE pruning = %s AND position_to > %s ORDER BY position_to LIMIT %s
"""


class PostgresChain:
    """As :class:`horolog.application.verify.hash_chain.ReadsChain` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._scan = PostgresLogScan(database)
        self._links = database.sql(_LINKS)
        self._pruned = database.sql(_PRUNED)

    def end(self) -> int:
        return self._database.query(self._database.sql(_END))[0][0]

    def links(self, after: int, limit: int) -> list[Link]:
        rows = self._database.query(self._links, {"after": after, "limit": limit})
        return [
            Link(end, first, events, content, digest, None if left is None else (left, rest))
            for end, first, events, content, digest, left, rest in rows
        ]

    def pruned_links(self, pruning: UUID, after: int, limit: int) -> list[PrunedLink]:
        rows = self._database.query(self._pruned, (pruning, after, limit))
        return [PrunedLink(*row) for row in rows]

    def page(self, after: int, limit: int) -> list[StoredEvent]:
        return [event.stored() for event in self._scan.page(after, limit)]

    def accounts(self) -> list[OccurrencesPruned]:
        said = said_of_log(self._database)
        return [event for _, event in said if isinstance(event, OccurrencesPruned)]
