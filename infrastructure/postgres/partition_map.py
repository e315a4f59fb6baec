"""Which partition is led by whom, and how much waits in each."""

from horolog.application.health import PartitionPlace
from horolog.infrastructure.postgres.database import Database

MOST_COUNTED = 10_000
"""Rows that are counted in a partition, so that looking stays cheap under a backlog."""

# The primary key of partitions; next_runs_fires, a bounded range of each partition.
_MAP = """
    SELECT p.partition,
           CASE WHEN p.lease_until >= clock_timestamp() THEN p.instance END,
           p.token,
           CASE WHEN p.lease_until >= clock_timestamp()
                THEN extract(epoch FROM p.lease_until - clock_timestamp())::float8 END,
           p.published,
           (SELECT count(*) FROM (
                SELECT FROM :schema.next_runs r
                WHERE r.partition = p.partition AND NOT r.look AND r.lane IS NULL
                LIMIT %(most)s) n)
    FROM :schema.partitions p ORDER BY p.partition
"""


class PostgresPartitionMap:
    """Looks at all partitions of a namespace in one bounded read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._text = database.sql(_MAP)

    def partition_map(self) -> list[PartitionPlace]:
        """All partitions by number. Errors: ``StoreUnavailable``, ``SchemaMissing``."""
        rows = self._database.query(self._text, {"most": MOST_COUNTED})
        return [PartitionPlace(*row) for row in rows]
