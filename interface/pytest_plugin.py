"""The pytest plugin for users: ``simulated_scheduler``, their jobs in simulated time.

    def test_a_bill_is_written_each_night(simulated_scheduler: SimulatedScheduler) -> None:
        simulated_scheduler.register("invoices.bill", schedule=Cron("0 2 * * *", "Europe/Vienna"))
        simulated_scheduler.advance(days=30)

pytest finds it by itself where Horolog is installed. It adds two fixtures and one marker, and
imports nothing more before a test asks for one of them.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from horolog.application.worker.handlers import Handlers
    from horolog.interface.testing import SimulatedScheduler


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers",
        "horolog(**arguments): how simulated_scheduler is made, such as start= and takes=;"
        " see horolog.testing.SimulatedScheduler",
    )


@pytest.fixture
def horolog_worker() -> "Handlers | None":
    """The worker whose handlers ``simulated_scheduler`` runs: override it and return yours.

    Without one, every run succeeds and returns nothing.
    """
    return None


@pytest.fixture
def simulated_scheduler(
    request: pytest.FixtureRequest, horolog_worker: "Handlers | None"
) -> "Generator[SimulatedScheduler]":
    """A :class:`horolog.testing.SimulatedScheduler` of the test's own, closed at its end.

    ``@pytest.mark.horolog(start=…, takes=…)`` says how it is made; what is marked closest to the
    test counts. ``worker=`` takes the place of the fixture ``horolog_worker``.
    """
    from horolog.interface.testing import SimulatedScheduler

    arguments: dict[str, Any] = {"worker": horolog_worker}
    for marker in reversed(list(request.node.iter_markers("horolog"))):
        arguments |= marker.kwargs
    with SimulatedScheduler(**arguments) as scheduler:
        yield scheduler
