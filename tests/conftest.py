"""What every test may ask for: real servers, shared by the session, and a namespace of its own."""

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from horolog.infrastructure.embedded import EmbeddedServers

_KEEPER = """
import shutil, sys
from pathlib import Path
from horolog.infrastructure.embedded import EmbeddedServers
sys.stdin.read()
try:
    EmbeddedServers(Path(sys.argv[1], "home")).stop()
finally:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


@contextmanager
def temporary_servers() -> Generator[EmbeddedServers]:
    """Servers in a fresh temporary home, not started yet; stopped and removed at the end.

    The end is watched for by a process of its own, which waits for its input to be closed: that
    happens when the test run ends, in whatever way, even by SIGKILL.
    """
    directory = tempfile.mkdtemp(prefix="horolog-test-")
    keeper = subprocess.Popen(
        [sys.executable, "-c", _KEEPER, directory], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield EmbeddedServers(Path(directory, "home"))
    finally:
        keeper.communicate()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def servers() -> Generator[EmbeddedServers]:
    """One pair of servers for the whole session: never stop these, see ``own_servers``."""
    with temporary_servers() as embedded:
        embedded.ensure()
        yield embedded


@pytest.fixture
def database_url(servers: EmbeddedServers) -> str:
    """The shared Postgres; a test keeps to its ``namespace`` in it."""
    found = servers.find()
    assert found is not None
    return found.database_url


@pytest.fixture
def nats_url(servers: EmbeddedServers) -> str:
    """The shared NATS; a test keeps to its ``namespace`` in it."""
    found = servers.find()
    assert found is not None
    return found.nats_url


@pytest.fixture
def namespace() -> str:
    """A name that no other test has: a Postgres schema and a NATS prefix of the test's own."""
    return f"t_{secrets.token_hex(5)}"


@pytest.fixture
def own_servers() -> Generator[EmbeddedServers]:
    """A started pair of the test's own, to kill and to wipe (about two seconds)."""
    with temporary_servers() as embedded:
        embedded.ensure()
        yield embedded
