"""The audit's side of Postgres, in one piece."""

from horolog.infrastructure.postgres.audit_executions import PostgresExecutions
from horolog.infrastructure.postgres.audit_skips import PostgresSkips
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.streams import PostgresStreams


class PostgresAudit(PostgresExecutions, PostgresSkips, PostgresStreams):
    """As :class:`horolog.application.queries.audit_ports.Audits` promises."""

    def __init__(self, database: Database) -> None:
        PostgresExecutions.__init__(self, database)
        PostgresSkips.__init__(self, database)
        PostgresStreams.__init__(self, database)
