"""What a home promises: one pair of servers, found by everybody, whose data and URLs stay."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nats
import psycopg
from nats.js.api import StorageType, StreamConfig
from nats.js.client import JetStreamContext

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.embedded.home import Home
from horolog.infrastructure.embedded.jetstream_probe import jetstream_answers

_ENSURE = """
import sys
from pathlib import Path
from horolog.infrastructure.embedded import EmbeddedServers
print(EmbeddedServers(Path(sys.argv[1])).ensure())
"""


def value(database_url: str, query: str) -> object:
    with psycopg.connect(database_url, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def execute(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(statement.encode())


@asynccontextmanager
async def jetstream(nats_url: str) -> AsyncGenerator[JetStreamContext]:
    client = await nats.connect(nats_url)  # pyright: ignore[reportUnknownMemberType]
    try:
        yield client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    finally:
        await client.close()


async def add_stream(streams: JetStreamContext, name: str) -> StreamConfig:
    config = StreamConfig(name=name, subjects=[name])
    added = await streams.add_stream(config)  # pyright: ignore[reportUnknownMemberType]
    return added.config


async def stream_names(nats_url: str) -> list[str | None]:
    async with jetstream(nats_url) as streams:
        return [stream.config.name for stream in await streams.streams_info()]


async def test_both_servers_answer_and_jetstream_is_on_disk(
    database_url: str, nats_url: str, namespace: str
):
    assert value(database_url, "SELECT 1") == 1
    async with jetstream(nats_url) as streams:
        assert (await add_stream(streams, namespace)).storage == StorageType.FILE


def test_commits_are_durable_and_text_is_unicode(own_servers: EmbeddedServers):
    database_url = own_servers.ensure().database_url

    def setting(name: str) -> object:
        return value(database_url, f"SHOW {name}")

    assert setting("fsync") == "on"
    assert setting("synchronous_commit") == "on"
    assert setting("full_page_writes") == "on"
    assert setting("server_encoding") == "UTF8"
    assert value(database_url, "SELECT upper('é') COLLATE \"default\"") == "É"
    assert value(database_url, "SELECT 'B' < 'a'") is True


def test_nobody_can_reach_postgres_over_the_network(database_url: str):
    assert value(database_url, "SHOW listen_addresses") == ""


def test_the_socket_is_closed_to_other_users(servers: EmbeddedServers):
    directory = servers.home / "postgres" / "run"
    assert directory.stat().st_mode & 0o077 == 0
    assert servers.home.stat().st_mode & 0o077 == 0


def test_nats_lets_in_only_who_knows_the_password_of_the_home(
    servers: EmbeddedServers, nats_url: str
):
    at = urlsplit(nats_url)
    assert at.hostname == "127.0.0.1"
    address, name = (at.hostname, at.port or 0), Home(servers.home).mark
    right, wrong = at.password or "", "0" * 32
    assert jetstream_answers(address, server=name, user="horolog", password=right)
    assert not jetstream_answers(address, server=name, user="horolog", password=wrong)


def test_nothing_is_found_before_the_first_start(tmp_path: Path):
    assert EmbeddedServers(tmp_path / "home").find() is None
    assert not (tmp_path / "home").exists()


def test_stopping_what_never_ran_is_no_error(tmp_path: Path):
    EmbeddedServers(tmp_path / "home").stop()


def test_everybody_who_names_the_home_finds_the_same_servers(
    servers: EmbeddedServers, tmp_path: Path
):
    another_name = tmp_path / "link"
    another_name.symlink_to(servers.home)
    found = servers.find()
    assert found is not None
    assert EmbeddedServers(servers.home).find() == found
    assert EmbeddedServers(another_name).ensure() == found


def test_processes_that_start_at_once_share_one_pair(own_servers: EmbeddedServers):
    own_servers.stop()
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", _ENSURE, str(own_servers.home)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    told = {starter.communicate()[0].strip() for starter in starters}
    assert [starter.returncode for starter in starters] == [0] * 4
    # The starters have ended; what they started has not.
    assert told == {str(own_servers.find())}


def test_a_stop_is_for_everybody_and_data_and_urls_outlast_it(own_servers: EmbeddedServers):
    before = own_servers.ensure()
    execute(before.database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    EmbeddedServers(own_servers.home).stop()
    assert own_servers.find() is None
    assert own_servers.ensure() == before
    assert value(before.database_url, "SELECT answer FROM kept") == 42


async def test_a_server_that_is_down_keeps_its_url(own_servers: EmbeddedServers):
    before = own_servers.ensure()
    own_servers.stop_nats()
    assert own_servers.find() == before
    own_servers.start_nats()
    own_servers.stop_postgres("immediate")
    assert own_servers.find() == before
    own_servers.start_postgres()
    assert own_servers.find() == before
    assert value(before.database_url, "SELECT 1") == 1
    assert await stream_names(before.nats_url) == []


async def test_streams_outlast_a_killed_server_and_not_a_lost_disk(own_servers: EmbeddedServers):
    url = own_servers.ensure().nats_url
    async with jetstream(url) as streams:
        await add_stream(streams, "kept")
    own_servers.kill_nats()
    own_servers.start_nats()
    assert await stream_names(url) == ["kept"]
    own_servers.kill_nats()
    own_servers.wipe_jetstream()
    own_servers.start_nats()
    assert await stream_names(url) == []


def test_faults_hit_only_the_servers_of_their_own_home(
    own_servers: EmbeddedServers, servers: EmbeddedServers, database_url: str
):
    postmaster = value(database_url, "SELECT pg_postmaster_start_time()")
    before = servers.find()
    own_servers.kill_nats()
    own_servers.kill_postgres()
    own_servers.wipe_jetstream()
    assert servers.ensure() == before
    assert value(database_url, "SELECT pg_postmaster_start_time()") == postmaster
