"""How far the log has come: where somebody begins who only wants what happens from now on."""

from horolog.infrastructure.postgres.database import Database

# The sequence that every append draws from; a refused append may leave a gap, so this is no count.
_POSITION = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM :schema.positions"


def log_position(database: Database) -> int:
    """The position of the last event; 0 where there is none. Raises ``StoreUnavailable``."""
    return database.query(database.sql(_POSITION))[0][0]
