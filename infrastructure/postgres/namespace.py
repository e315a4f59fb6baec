"""What was fixed when the namespace was created."""

from horolog.application.several_logs.place import LogPlace
from horolog.domain.errors import SchemaMissing
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.recorded_place import Recorded, check_recorded


def partitions_of(database: Database) -> int:
    """The namespace's number of partitions.

    Raises ``SchemaMissing``, ``SchemaTooNew`` or ``StoreUnavailable``: the first thing that a
    client asks, so that a schema it cannot work on is found before anything is written.
    """
    # Past the pool, which would go on trying for some seconds before it says that nobody is there.
    with database.session():
        pass
    check_schema(database)
    rows = database.query(database.sql("SELECT partitions FROM :schema.namespace"))
    if not rows:  # the migrations are done, and their process is about to write the row
        raise SchemaMissing(
            f"namespace {database.namespace!r} is just being created: run `horolog migrate`"
        )
    return rows[0][0]


def recorded_of(database: Database) -> Recorded:
    """Which log of the namespace the database is. Raises ``StoreUnavailable``."""
    rows = database.query(
        database.sql("SELECT log, logs, set_id, partitions FROM :schema.namespace")
    )
    if not rows:
        raise SchemaMissing(
            f"namespace {database.namespace!r} is just being created: run `horolog migrate`"
        )
    return Recorded(*rows[0])


def check_place(database: Database, place: LogPlace) -> None:
    """Raises ``InvalidSetting`` where the database is not this log of the namespace: the wrong
    order, one too few, another installation's. Also as :func:`recorded_of`."""
    check_recorded(recorded_of(database), place, database.namespace)


def message_key_of(database: Database) -> bytes:
    """What the messages of the ready queue are signed with. Raises ``StoreUnavailable``."""
    rows = database.query(database.sql("SELECT message_key FROM :schema.namespace"))
    return bytes(rows[0][0])
