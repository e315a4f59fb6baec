"""Read models from the log: what is wrong is found row by row, and put right while it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.interface.test_verification import played

from horolog.interface.projections import Projections

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.interface.conftest import Stage

    from horolog import Scheduler
    from horolog.infrastructure.postgres.database import Database


@pytest.fixture
def projections(database: Database) -> Generator[Projections]:
    with Projections(database.url, namespace=database.namespace, actor="olga") as opened:
        yield opened


def test_an_honest_log_has_no_difference(
    projections: Projections, scheduler: Scheduler, stage: Stage
) -> None:
    assert projections.verify().ok
    played(scheduler, stage)
    outcome = projections.verify()
    assert [d for d in outcome.differences] == []
    assert outcome.events == stage.events()
