"""The library's own cases for recorders, on our tables.

They store arbitrary topics and states, so the namespace is a plain event store. The case for
aggregate recorders is left out: it demands that no notification ids are returned, and ours are also
application recorders. Speed is measured under ``bench/``.
"""

from typing import Any

import pytest
from eventsourcing.tests import persistence as published

from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Database


class OnOurTables:
    recorder: PostgresLogRecorder

    @pytest.fixture(autouse=True)
    def given_recorder(self, database: Database) -> None:
        self.recorder = PostgresLogRecorder(database, plain=True)

    def create_recorder(self) -> Any:
        return self.recorder

    def test_performance(self) -> None:
        """Measured elsewhere."""


class TestAsApplicationRecorder(OnOurTables, published.ApplicationRecorderTestCase[Any]):
    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()

    def test_concurrent_throughput(self) -> None:
        """Measured elsewhere."""


class TestAsTrackingRecorder(OnOurTables, published.TrackingRecorderTestCase):
    pass


class TestAsProcessRecorder(OnOurTables, published.ProcessRecorderTestCase):
    pass


class TestOrderOfConcurrentAppends(OnOurTables, published.NonInterleavingNotificationIDsBaseCase):
    pass
