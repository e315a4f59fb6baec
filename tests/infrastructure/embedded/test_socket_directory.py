"""The socket of a home that is too deep for sockets goes to a short directory of its own."""

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.socket_directory import socket_directory


def directory_of(database_url: str) -> Path:
    return Path(parse_qs(urlsplit(database_url).query)["host"][0])


@pytest.fixture
def deep_servers(tmp_path: Path) -> Generator[EmbeddedServers]:
    servers = EmbeddedServers(tmp_path / ("deep" * 30) / "a 'home', with % and \"é\"")
    try:
        yield servers
    finally:
        servers.stop()


def test_a_deep_home_works_and_keeps_its_url_after_the_temporary_directory_was_emptied(
    deep_servers: EmbeddedServers,
):
    url = deep_servers.ensure().database_url
    directory = directory_of(url)
    assert not directory.is_relative_to(deep_servers.home)
    assert directory.stat().st_mode & 0o777 == 0o700
    deep_servers.kill_postgres()
    shutil.rmtree(directory)  # as a reboot would
    assert deep_servers.ensure().database_url == url
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    deep_servers.stop()
    assert not directory.exists()


def test_a_directory_that_somebody_else_made_first_is_not_used(tmp_path: Path):
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:
        taken = Path(parent, "taken")
        taken.mkdir(mode=0o755)  # others may enter
        link = Path(parent, "link")
        link.symlink_to(tempfile.mkdtemp(dir=parent))
        too_deep = tmp_path / ("deep" * 30)
        too_deep.mkdir()
        for remembered in (taken, link):
            chosen = socket_directory(too_deep, remembered=remembered, account=ourselves())
            try:
                assert chosen != remembered
                assert chosen.stat().st_uid == os.geteuid()
            finally:
                chosen.rmdir()
