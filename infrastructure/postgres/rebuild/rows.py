"""About how many rows each read model has: the planner's estimate, which costs nothing."""

from horolog.infrastructure.postgres.database import Database
from horolog.projections.changes import PROJECTIONS

_ROWS = """
    SELECT w.name, coalesce(sum(greatest(c.reltuples, s.n_live_tup, 0)), 0)::bigint
    FROM unnest(%s::text[]) AS w (name)
    CROSS JOIN LATERAL :schema.table_tree(:literal, w.name) t
    JOIN pg_class c ON c.oid = t.relation AND c.relkind = 'r'
    LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
    GROUP BY w.name
"""


def row_counts(database: Database) -> dict[str, int]:
    """The estimate for each projection."""
    return dict(database.query(database.sql(_ROWS), (list(PROJECTIONS),)))  # pyright: ignore[reportArgumentType, reportCallIssue]
