"""The connection to NATS and the stream of a namespace, on a real server."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError

from horolog.domain.errors import InvalidSetting, QueueUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings


@pytest.fixture
async def jetstream(nats_url: str) -> AsyncIterator[JetStreamContext]:
    client, jetstream = await connect(nats_url)
    yield jetstream
    await client.close()


@pytest.mark.parametrize("url", ["", "localhost:4222", "http://localhost", "nats://", "nats://h:x"])
async def test_a_url_that_cannot_be_one_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(InvalidSetting, match="looks like nats://"):
        await connect(url)


async def test_a_server_that_is_away_is_told_at_once_and_without_the_password() -> None:
    with pytest.raises(QueueUnavailable, match=r"127\.0\.0\.1:1\b") as refused:
        await connect("nats://user:secret@127.0.0.1:1")
    assert "secret" not in str(refused.value)


async def test_a_wrong_password_is_told_at_once(nats_url: str) -> None:
    host = nats_url.rpartition("@")[2]
    with pytest.raises(QueueUnavailable, match=r"(?i)authorization|refused the user"):
        await connect(f"nats://nobody:wrong@{host}")


async def test_a_client_comes_back_after_a_restart_of_the_server(
    own_servers: EmbeddedServers,
) -> None:
    found = own_servers.find()
    assert found is not None
    back = asyncio.Event()

    async def on_reconnect() -> None:
        back.set()

    client, jetstream = await connect(found.nats_url, reconnected=on_reconnect)
    await asyncio.to_thread(own_servers.stop_nats)
    await asyncio.to_thread(own_servers.start_nats)
    await asyncio.wait_for(back.wait(), 20)
    assert (await ReadyStream(jetstream, "t").ensure()).messages == 0
    await client.close()


async def test_a_worker_that_comes_after_the_files_were_deleted_makes_the_stream_anew(
    own_servers: EmbeddedServers,
) -> None:
    found = own_servers.find()
    assert found is not None
    client, jetstream = await connect(found.nats_url)
    stream = ReadyStream(jetstream, "t")
    await stream.ensure_queue("default")
    assert not await stream.drop_if_lost()
    before = await stream.state()
    await asyncio.to_thread(own_servers.wipe_jetstream)
    await stream.ensure_queue("default")
    after = await stream.state()
    assert before is not None
    assert after is not None
    assert after.created != before.created
    await jetstream.publish("t.ready.default", b"kept", timeout=5)
    await asyncio.to_thread(own_servers.wipe_jetstream)
    assert await stream.drop_if_lost()
    assert await stream.state() is None
    assert not await stream.drop_if_lost()
    await client.close()


async def test_many_processes_may_make_the_stream_and_its_consumers_at_once(
    nats_url: str, namespace: str
) -> None:
    async def one() -> Client:
        client, jetstream = await connect(nats_url)
        stream = ReadyStream(jetstream, namespace)
        await stream.ensure_queue("default")
        await stream.ensure()
        return client

    clients = await asyncio.gather(*(one() for _ in range(8)))
    stream = ReadyStream(clients[0].jetstream(), namespace)  # pyright: ignore[reportUnknownMemberType]
    assert await stream.queues() == ["default"]
    for client in clients:
        await client.close()


async def test_what_an_operator_deleted_is_made_again(
    jetstream: JetStreamContext, namespace: str
) -> None:
    stream = ReadyStream(jetstream, namespace)
    await stream.ensure_queue("a")
    born = await stream.state()
    await jetstream.delete_consumer(stream.name, "a")
    assert not await stream.has_queue("a")
    await stream.ensure_queue("a")
    assert await stream.has_queue("a")
    await jetstream.delete_stream(stream.name)
    assert await stream.state() is None
    assert await stream.queues() == []
    await stream.ensure_queue("a")
    again = await stream.state()
    assert born is not None
    assert again is not None
    assert again.created != born.created, "one life of the stream is told from the next"


async def test_a_full_stream_refuses_and_keeps_what_it_has(
    jetstream: JetStreamContext, namespace: str
) -> None:
    stream = ReadyStream(jetstream, namespace, StreamSettings(max_messages=2))
    await stream.ensure_queue("a")
    for number in (1, 2):
        await jetstream.publish(stream.subject("a"), b"%d" % number)
    with pytest.raises(APIError, match="maximum messages"):
        await jetstream.publish(stream.subject("a"), b"3")
    state = await stream.state()
    assert state is not None
    assert (state.messages, state.first_seq) == (2, 1)


async def test_new_bounds_are_applied_to_a_stream_that_is_there(
    jetstream: JetStreamContext, namespace: str
) -> None:
    await ReadyStream(jetstream, namespace, StreamSettings(max_messages=5)).ensure()
    await ReadyStream(jetstream, namespace, StreamSettings(max_messages=7)).ensure()
    info = await jetstream.stream_info(f"{namespace}_ready")
    assert info.config.max_msgs == 7


async def test_a_foreign_stream_of_the_same_name_is_not_taken_over(
    jetstream: JetStreamContext, namespace: str
) -> None:
    await jetstream.add_stream(name=f"{namespace}_ready", subjects=[f"{namespace}.else"])  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(InvalidSetting, match="nats stream rm"):
        await ReadyStream(jetstream, namespace).ensure()


async def test_all_queues_are_listed_however_many_there_are(
    jetstream: JetStreamContext, namespace: str
) -> None:
    stream = ReadyStream(jetstream, namespace)
    await stream.ensure()
    wanted = sorted(f"q{number:03}" for number in range(300))
    for start in range(0, 300, 50):
        await asyncio.gather(*(stream.ensure_queue(q) for q in wanted[start : start + 50]))
    assert await stream.queues() == wanted


async def test_copies_are_refused_by_a_server_that_is_alone(
    jetstream: JetStreamContext, namespace: str
) -> None:
    copied = ReadyStream(jetstream, namespace, StreamSettings(replicas=3))
    with pytest.raises(InvalidSetting, match="stream_replicas=3 needs a NATS cluster"):
        await copied.ensure()
    await ReadyStream(jetstream, namespace).ensure()
    with pytest.raises(InvalidSetting, match="stream_replicas=3 needs a NATS cluster"):
        await copied.replicate()
