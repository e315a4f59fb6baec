"""What every test may ask for: real servers, shared by the session, and a namespace of its own."""

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from hypothesis import settings

from horolog.infrastructure.embedded import EmbeddedServers

# How long an example takes says more about the machine than about the code.
settings.register_profile("horolog", deadline=None)
settings.load_profile("horolog")

_CLEAN_UP = """
import shutil, sys
from pathlib import Path
directories = [Path(line.rstrip("\\n")) for line in sys.stdin]
from horolog.infrastructure.embedded import EmbeddedServers
for directory in directories:
    if directory.exists():
        try:
            servers = EmbeddedServers(directory / "home")
            servers.stop("immediate")
        finally:
            shutil.rmtree(directory, ignore_errors=True)
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of ours."""
    parser.addoption(
        "--fault-seeds", type=int, default=2, metavar="N",
        help="how many seeds the fault tests try that have one",
    )  # fmt: skip
    parser.addoption(
        "--browser", action="store_true",
        help="also look at the page with a real browser (make browser-test)",
    )  # fmt: skip


class TemporaryHomes:
    """Homes that are gone when the test run is, in whatever way it ends, even by SIGKILL.

    A process of its own, out of reach of a Ctrl-C, is told of each home and waits for its input to
    be closed; then it stops the servers that are left and removes their directories.
    """

    def __init__(self) -> None:
        self._cleaner = subprocess.Popen(
            [sys.executable, "-c", _CLEAN_UP],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @contextmanager
    def servers(self) -> Generator[EmbeddedServers]:
        """Servers in a fresh home, started; stopped and removed at the end."""
        directory = Path(tempfile.mkdtemp(prefix="horolog-test-"))
        assert self._cleaner.stdin is not None
        print(directory, file=self._cleaner.stdin, flush=True)
        servers = EmbeddedServers(directory / "home")
        try:
            servers.ensure()
            yield servers
        finally:
            # Nobody reads it again: the checkpoint of a clean stop would be for nothing, and takes
            # a minute after a whole suite.
            servers.stop("immediate")
            shutil.rmtree(directory, ignore_errors=True)  # the cleaner tries again

    def close(self) -> None:
        """Wait until nothing is left."""
        self._cleaner.communicate()


@pytest.fixture(scope="session")
def temporary_homes() -> Generator[TemporaryHomes]:
    """Where the session's servers come from."""
    homes = TemporaryHomes()
    try:
        yield homes
    finally:
        homes.close()


@pytest.fixture(scope="session")
def servers(temporary_homes: TemporaryHomes) -> Generator[EmbeddedServers]:
    """One pair of servers for the whole session: never stop these, see ``own_servers``.

    Nobody cuts their power, so this Postgres need not wait for the disk; it would take most of the
    suite's time. ``own_servers`` keep their production durability.
    """
    with temporary_homes.servers() as embedded:
        with psycopg.connect(embedded.ensure().database_url, autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
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
def own_servers(temporary_homes: TemporaryHomes) -> Generator[EmbeddedServers]:
    """A started pair of the test's own, to kill and to wipe (about a second)."""
    with temporary_homes.servers() as embedded:
        yield embedded
