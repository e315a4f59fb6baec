"""``horolog verify`` wired to a namespace's log."""

from horolog.application.verify import Report, verify
from horolog.application.verify.whole_log import Progress
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.interface.settings import Settings


def verify_log(settings: Settings, *, progress: Progress | None = None) -> Report:
    """Checks the whole log against the invariants; see :mod:`horolog.application.verify`.

    Raises ``StoreUnavailable``, ``SchemaMissing`` or ``SchemaTooNew``.
    """
    database = Database(settings.database_url(), settings.namespace)
    try:
        check_schema(database)
        return verify(PostgresLogScan(database), progress=progress)
    finally:
        database.close()
