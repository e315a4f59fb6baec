"""What Postgres and our own adapters raise, as the errors that the library promises."""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from eventsourcing.persistence import (
    DataError,
    IntegrityError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

from horolog.domain.errors import (
    OutOfRange,
    SchemaMissing,
    SchemaTooNew,
    StoreUnavailable,
    UnreadableEvent,
    VersionConflict,
)


@contextmanager
def library_errors() -> Generator[None]:
    """Turns what was raised into the library's: ``OperationalError`` is worth a repetition."""
    try:
        yield
    except (VersionConflict, psycopg.IntegrityError) as error:
        raise IntegrityError(str(error)) from error
    except (UnreadableEvent, OutOfRange, psycopg.DataError) as error:
        raise DataError(str(error)) from error
    except (SchemaMissing, SchemaTooNew, psycopg.ProgrammingError) as error:
        raise ProgrammingError(str(error)) from error
    except StoreUnavailable as error:
        raise OperationalError(str(error)) from error
    except psycopg.Error as error:
        raise PersistenceError(str(error)) from error
