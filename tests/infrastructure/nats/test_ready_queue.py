"""Publishing, looking and scanning on a real JetStream."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from nats.js import JetStreamContext

from horolog.application.scanner.outbox import Message, Pending
from horolog.application.scanner.sent import Place
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings


@pytest.fixture
async def jetstream(nats_url: str) -> AsyncIterator[JetStreamContext]:
    client, jetstream = await connect(nats_url)
    yield jetstream
    await client.close()


@pytest.fixture
async def queue(nats_url: str, namespace: str) -> AsyncIterator[NatsReadyQueue]:
    queue = NatsReadyQueue(nats_url, namespace, settings=StreamSettings(max_messages=5))
    yield queue
    await queue.close()


def message(queue: str = "default", size: int = 5) -> Message:
    run = Pending(uuid4(), 1, queue, b"x" * size, None)
    return Message(queue, run.message_id, [run])


async def test_messages_are_confirmed_with_their_place_and_found_there_again(
    queue: NatsReadyQueue,
) -> None:
    messages = [message(), message("other"), message()]
    receipts = await queue.publish(messages)
    assert [receipt.answer for receipt in receipts] == ["stored"] * 3
    places = [receipt.place for receipt in receipts if receipt.place is not None]
    assert [place.seq for place in places] == [1, 2, 3]
    assert await queue.holds(places) == [True] * 3
    first = places[0]
    assert (
        await queue.holds(
            [
                Place(first.life, 1, "another message"),
                Place(first.life, 99, first.message_id),
                Place("another life", 1, first.message_id),
            ]
        )
        == [False] * 3
    )
    held = await queue.contents(first.life, 1, 10)
    assert [found.place for found in held] == places
    assert [found.data for found in held] == [sent.data for sent in messages]


async def test_a_repeated_id_is_answered_as_a_duplicate_with_the_first_place(
    queue: NatsReadyQueue,
) -> None:
    once = message()
    [first] = await queue.publish([once])
    [again] = await queue.publish([once])
    assert again.answer == "duplicate"
    assert again.place == first.place


async def test_a_full_stream_refuses_what_does_not_fit_and_keeps_the_oldest(
    queue: NatsReadyQueue,
) -> None:
    receipts = await queue.publish([message() for _ in range(8)])
    assert [r.answer for r in receipts] == ["stored"] * 5 + ["refused"] * 3
    assert "maximum messages" in receipts[-1].detail


async def test_a_message_beyond_the_servers_limit_is_told_from_the_others(
    queue: NatsReadyQueue,
) -> None:
    receipts = await queue.publish([message(size=2_000_000), message()])
    assert [r.answer for r in receipts] == ["too_large", "stored"]


async def test_a_deleted_stream_is_made_again_with_its_consumers_in_another_life(
    queue: NatsReadyQueue, jetstream: JetStreamContext, namespace: str
) -> None:
    await queue.publish([message("a"), message("b")])
    before = await queue.look()
    assert (before.first_seq, before.last_seq) == (1, 2)
    await jetstream.delete_stream(f"{namespace}_ready")
    after = await queue.look()
    assert after.life != before.life
    assert after.last_seq == 0
    stream = ReadyStream(jetstream, namespace)
    assert await stream.queues() == ["a", "b"]
    await queue.publish([message("a")])
    await jetstream.delete_stream(f"{namespace}_ready")
    lost = message("a")
    [receipt] = await queue.publish([lost])
    assert receipt.answer == "unknown"
    [receipt] = await queue.publish([lost])
    assert receipt.answer == "stored"


async def test_a_deleted_consumer_is_made_again_and_a_workers_own_settings_are_kept(
    queue: NatsReadyQueue, jetstream: JetStreamContext, namespace: str
) -> None:
    theirs = ReadyStream(jetstream, namespace, StreamSettings(ack_wait_s=7))
    await theirs.ensure_queue("a")
    await queue.publish([message("a")])
    info = await jetstream.consumer_info(f"{namespace}_ready", "a")
    assert info.config.ack_wait == 7
    await jetstream.delete_consumer(f"{namespace}_ready", "a")
    await queue.look()
    assert await theirs.has_queue("a")


async def answer_of(queue: NatsReadyQueue) -> str:
    try:
        return (await queue.publish([message()]))[0].answer
    except QueueUnavailable:
        return "away"


async def until(queue: NatsReadyQueue, answer: str) -> None:
    async with asyncio.timeout(20):
        while await answer_of(queue) != answer:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.02)


async def test_while_the_server_is_away_every_call_says_so_at_once(
    own_servers: EmbeddedServers,
) -> None:
    found = own_servers.find()
    assert found is not None
    queue = NatsReadyQueue(found.nats_url, "t", timeout_s=2)
    await queue.publish([message()])
    own_servers.stop_nats()
    assert await answer_of(queue) in ("unknown", "away")
    await until(queue, "away")
    with pytest.raises(QueueUnavailable):
        await queue.look()
    own_servers.start_nats()
    await until(queue, "stored")
    await queue.close()
