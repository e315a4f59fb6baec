"""Servers to be killed and wiped, shared by these tests, and a fresh system on them for each."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.system.system import System, system_on

from horolog.infrastructure.embedded import EmbeddedServers


@pytest.fixture(scope="session")
def servers_at_risk(temporary_homes: Any) -> Generator[EmbeddedServers]:
    """Started again for each test, whatever the one before has done to them."""
    with temporary_homes.servers() as embedded:
        yield embedded


@pytest.fixture
def system(servers_at_risk: EmbeddedServers, namespace: str, tmp_path: Path) -> Generator[System]:
    """No process runs in it yet; none is left at the end."""
    with system_on(servers_at_risk, namespace, tmp_path) as whole:
        yield whole


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """As many seeds as ``--fault-seeds`` says; of what takes long, half as many."""
    seeds: int = metafunc.config.getoption("--fault-seeds")  # pyright: ignore[reportAssignmentType]
    for name, count in (("fault_seed", seeds), ("long_fault_seed", max(1, seeds // 2))):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(count))
