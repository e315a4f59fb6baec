"""Taking from the ready queue: the consumers have what the worker needs, whoever made them."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from nats.js import JetStreamContext

from horolog.application.scanner.outbox import Message, Pending
from horolog.infrastructure.nats import ready_source
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.ready_source import NatsReadySource, ServerTime
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings


@pytest.fixture
async def jetstream(nats_url: str) -> AsyncGenerator[JetStreamContext]:
    client, jetstream = await connect(nats_url)
    yield jetstream
    await client.close()


@pytest.mark.parametrize("queues", [None, ["a"]])
async def test_a_consumer_that_a_scanner_made_gets_the_workers_ack_wait(
    jetstream: JetStreamContext, nats_url: str, namespace: str, queues: list[str] | None
) -> None:
    """Or a delivery that died with its worker would be back after the scanner's 30 seconds."""
    scanner = ReadyStream(jetstream, namespace)
    await scanner.ensure_queue("a", keep=True)
    source = NatsReadySource(nats_url, namespace, queues, settings=StreamSettings(ack_wait_s=3))
    await source.start()
    pulling = asyncio.create_task(source.pull(1))
    try:
        assert await ack_wait_s(scanner) == 3
        # Somebody deletes it, and worker and scanner make it anew at once.
        await jetstream.delete_consumer(scanner.name, "a")
        async with asyncio.timeout(20):
            while await made_by_the_scanner(scanner) != 3:
                pass
        for _ in range(20):
            assert await made_by_the_scanner(scanner) == 3, "what is there is kept"
    finally:
        pulling.cancel()
        await source.close()


async def made_by_the_scanner(scanner: ReadyStream) -> float | None:
    await scanner.ensure_queue("a", keep=True)
    return await ack_wait_s(scanner)


async def ack_wait_s(stream: ReadyStream) -> float | None:
    info = await stream.jetstream.consumer_info(stream.name, "a")
    return info.config.ack_wait


@pytest.mark.parametrize("moments", range(5))
async def test_a_source_that_hears_news_while_it_is_closed_is_closed(
    nats_url: str, namespace: str, moments: int
) -> None:
    source = NatsReadySource(nats_url, namespace, None)
    await source.start()
    source._news.set()  # pyright: ignore[reportPrivateUsage] - as an advisory does
    for _ in range(moments):
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await source.close()


def test_the_age_of_a_message_is_told_by_the_servers_stamps_alone() -> None:
    monotonic = 50.0
    time = ServerTime(lambda: monotonic)
    an_hour_old = 1_000.0
    assert time.age_s(an_hour_old, arrived_at=50.0) == 0, "nothing tells what time it is there"
    monotonic = 57.0
    assert time.age_s(an_hour_old, arrived_at=56.0) == 7
    fresh = 4_600.0
    assert time.age_s(fresh, arrived_at=57.0) == 0
    assert time.age_s(an_hour_old, arrived_at=57.0) == 3_600


async def test_a_message_that_comes_while_a_source_is_closed_is_offered_to_others_at_once(
    nats_url: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request lingers at the server; what it still brings would be lost for the ack wait."""
    queue = NatsReadyQueue(nats_url, namespace, timeout_s=5)
    leaving = NatsReadySource(nats_url, namespace, ["a"])
    other = NatsReadySource(nats_url, namespace, ["a"])
    await leaving.start()
    pulling = asyncio.create_task(leaving.pull(1))
    ended = ready_source._ended  # pyright: ignore[reportPrivateUsage]

    async def meanwhile(tasks: Collection[asyncio.Task[None]]) -> None:
        await ended(tasks)
        await queue.publish([Message("a", "1", [Pending(uuid4(), 1, "a", b"late", None)])])

    try:
        async with asyncio.timeout(10):
            queues = leaving._queues  # pyright: ignore[reportPrivateUsage]
            while not queues["a"].expected:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0)
        pulling.cancel()
        monkeypatch.setattr(ready_source, "_ended", meanwhile)
        await leaving.close()
        monkeypatch.undo()
        await other.start()
        async with asyncio.timeout(10):
            [message] = await other.pull(1)
        assert message.data
    finally:
        await other.close()
        await queue.close()


async def test_a_queue_that_refuses_every_request_is_not_asked_as_fast_as_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit of the server's or of the consumer's: making the consumer anew changes nothing."""
    source, now = NatsReadySource("nats://nowhere", "n", ["a"]), [100.0]
    monkeypatch.setattr(ready_source, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asked: list[str] = []

    class Refusing:
        name = "stream"

        async def publish(self, subject: str, data: bytes, reply: str) -> None:
            asked.append(subject)
            headers = {"Status": "409", "Description": "Exceeded MaxWaiting"}
            answer: Any = SimpleNamespace(headers=headers, data=b"")
            source._on_message(queue, answer)  # pyright: ignore[reportPrivateUsage]

        async def has_queue(self, name: str) -> bool:
            return True

        async def ensure_queue(self, name: str) -> None:
            return

    server: Any = Refusing()
    subscription: Any = SimpleNamespace(subject="inbox")
    queue = ready_source._Queue("a", subscription)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(source, "_client", SimpleNamespace(publish=server.publish, is_closed=False))
    monkeypatch.setattr(source, "_stream", server)
    monkeypatch.setattr(source, "_queues", {"a": queue})
    monkeypatch.setattr(source, "_limit", 10)
    news = source._news  # pyright: ignore[reportPrivateUsage]

    async def refused(at: float) -> bool:
        """Whether it is looked after at once, when it is refused at this time."""
        now[0] = at
        news.clear()
        await source._mend(at)  # pyright: ignore[reportPrivateUsage]
        return news.is_set()

    await source._ask_all()  # pyright: ignore[reportPrivateUsage]
    assert news.is_set(), "the consumer may be gone: at once"
    assert not await refused(100.0)
    assert not await refused(100.25), "now and then"
    assert len(asked) == 3, "it is asked each time that it was looked after"
    now[0] = 200.0
    await source._ask(queue)  # pyright: ignore[reportPrivateUsage]
    assert news.is_set(), "one that went well for a while is looked after at once again"
