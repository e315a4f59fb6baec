"""What an unclean end leaves behind is no obstacle, and nobody else pays for it."""

import os
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from horolog.infrastructure.embedded import EmbeddedPostgresFailed, EmbeddedServers
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.processes import Signature, find


@contextmanager
def stranger(home: Path) -> Generator[int]:
    """A process of the servers' user that has nothing to do with them; it must survive."""
    account = Home(home).servers
    process = subprocess.Popen(["/bin/sleep", "600"], **account.owning())
    try:
        yield process.pid
        assert process.poll() is None, "the stranger was killed"
    finally:
        process.kill()
        process.wait()


def remove(home: Path) -> None:
    """Take a home away from under its servers, who may be writing to it."""
    gone = home.with_name("gone")
    home.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def answers(database_url: str) -> bool:
    with psycopg.connect(database_url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_after_a_kill_of_both_the_committed_is_there_again(own_servers: EmbeddedServers):
    before = own_servers.ensure()
    with psycopg.connect(before.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    own_servers.kill_postgres()
    own_servers.kill_nats()
    assert (own_servers.home / "postgres" / "data" / "postmaster.pid").exists()
    assert own_servers.find() is None
    assert own_servers.ensure() == before
    with psycopg.connect(before.database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)


def test_pids_that_belong_to_another_program_now_are_no_obstacle(own_servers: EmbeddedServers):
    before = own_servers.ensure()
    own_servers.kill_postgres()
    own_servers.kill_nats()
    home = own_servers.home
    with stranger(home) as pid:
        pid_file = home / "postgres" / "data" / "postmaster.pid"
        socket_lock = home / "postgres" / "run" / ".s.PGSQL.5432.lock"
        for file in (pid_file, socket_lock, home / "nats" / "nats.pid"):
            rest = file.read_text().partition("\n")[2]
            file.write_text(f"{pid}\n{rest}")
        assert own_servers.find() is None
        assert own_servers.ensure() == before
        assert answers(before.database_url)
        own_servers.stop()


def test_servers_whose_directories_were_removed_are_replaced(own_servers: EmbeddedServers):
    own_servers.ensure()
    remove(own_servers.home)
    fresh = own_servers.ensure()
    assert answers(fresh.database_url)
    own_servers.stop()
    assert own_servers.find() is None


def test_servers_of_a_home_that_is_gone_can_still_be_stopped(own_servers: EmbeddedServers):
    mark = Home(own_servers.home).mark
    signatures = Signature("postgres", f"cluster_name={mark}"), Signature("nats-server", mark)
    assert None not in [find(signature) for signature in signatures]
    remove(own_servers.home)
    own_servers.stop()
    assert [find(signature) for signature in signatures] == [None, None]


def test_a_cluster_that_was_never_finished_is_made_anew(tmp_path: Path):
    servers = EmbeddedServers(tmp_path / "home")
    unfinished = servers.home / "postgres" / "new-0000"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    try:
        servers.start_postgres()
        assert not unfinished.exists()
    finally:
        servers.stop()


def test_a_memory_that_cannot_be_read_costs_only_the_old_addresses(own_servers: EmbeddedServers):
    own_servers.kill_nats()
    (own_servers.home / "servers.json").write_text("{")
    assert answers(own_servers.ensure().database_url)


def test_a_port_that_was_taken_meanwhile_is_given_up(own_servers: EmbeddedServers):
    before = own_servers.ensure()
    own_servers.kill_nats()
    with socket.create_server(("127.0.0.1", urlsplit(before.nats_url).port or 0)):
        after = own_servers.ensure()
    assert after.nats_url != before.nats_url
    assert after.database_url == before.database_url


def test_data_that_somebody_unseen_still_writes_are_not_touched(own_servers: EmbeddedServers):
    own_servers.stop()
    lock = own_servers.home / "postgres" / "lock"
    holder = subprocess.Popen(
        ["flock", "--no-fork", str(lock), "-c", "echo held; exec sleep 600"], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        impatient = EmbeddedServers(own_servers.home, timeout_s=0.2)
        with pytest.raises(EmbeddedPostgresFailed, match="cannot be seen from here"):
            impatient.ensure()
    finally:
        holder.kill()
        holder.communicate()


def test_a_copied_home_does_not_disturb_the_original(own_servers: EmbeddedServers, tmp_path: Path):
    original = own_servers.ensure()
    own_servers.stop()
    copy = EmbeddedServers(tmp_path / "copy")
    subprocess.run(["cp", "-a", own_servers.home, copy.home], check=True)
    own_servers.ensure()
    try:
        copied = copy.ensure()
        assert copied.database_url != original.database_url
        assert copied.nats_url != original.nats_url
        assert answers(copied.database_url)
        assert answers(original.database_url)
    finally:
        copy.stop()
    assert os.path.exists(copy.home)
