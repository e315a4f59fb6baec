"""The tutorial, as a newcomer walks it: each of its programs and commands, in their order."""

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.acceptance import walk
from tests.acceptance.conftest import Horolog

from horolog.infrastructure.embedded import EmbeddedServers


@pytest.fixture
def terminal(clean_environment: dict[str, str], tmp_path: Path) -> Generator[Horolog]:
    home = {"HOROLOG_HOME": str(tmp_path / ".horolog")}
    commands = Horolog(clean_environment | home, tmp_path)
    try:
        yield commands
    finally:
        commands.stop_all()
        EmbeddedServers(tmp_path / ".horolog").stop()


def test_the_tutorial_can_be_walked(terminal: Horolog) -> None:
    walk.tutorial(terminal)
