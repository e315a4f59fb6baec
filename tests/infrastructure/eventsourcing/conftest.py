"""A recorder on a migrated namespace."""

import pytest

from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Database


@pytest.fixture
def recorder(database: Database) -> PostgresLogRecorder:
    return PostgresLogRecorder(database)
