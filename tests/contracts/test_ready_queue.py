"""What every ready queue promises, to the scanner that publishes and to the worker that pulls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from horolog.application.scanner.assembly import Queue
from horolog.application.scanner.outbox import Message, Pending
from horolog.application.scanner.sent import Place
from horolog.application.worker.held import DONE, NEVER, WORKING, PullsReady, later
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.ready_source import NatsReadySource
from horolog.infrastructure.nats.stream import StreamSettings
from horolog.infrastructure.simulated.ready_queue import SimulatedReadyQueue, SimulatedReadySource
from horolog.infrastructure.simulated.ready_stream import Bounds, SimulatedStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from horolog.application.worker.held import ReadyMessage


@dataclass
class Both:
    """Both ends, and an operator who deletes the stream."""

    queue: Queue
    source: PullsReady
    delete: Callable[[], Awaitable[None]]


ACK_WAIT_S = 1.0


@pytest.fixture(params=["nats", "simulated"])
async def both(request: pytest.FixtureRequest) -> AsyncGenerator[Both]:
    if request.param == "simulated":
        bounds = Bounds(max_messages=5, ack_wait_s=ACK_WAIT_S)
        stream = SimulatedStream(monotonic, bounds)

        async def delete() -> None:
            stream.delete()

        source = SimulatedReadySource(stream, None, monotonic)
        await source.start()
        yield Both(SimulatedReadyQueue(stream), source, delete)
        await source.close()
        return
    url, namespace = (request.getfixturevalue(name) for name in ("nats_url", "namespace"))
    settings = StreamSettings(max_messages=5, ack_wait_s=ACK_WAIT_S)
    client, jetstream = await connect(url)

    async def delete_stream() -> None:
        await jetstream.delete_stream(f"{namespace}_ready")

    queue = NatsReadyQueue(url, namespace, settings=settings)
    source = NatsReadySource(url, namespace, None, settings=settings)
    await source.start()
    yield Both(queue, source, delete_stream)
    await source.close()
    await queue.close()
    await client.close()


def message(queue: str = "default", size: int = 5) -> Message:
    run = Pending(uuid4(), 1, queue, b"x" * size, None)
    return Message(queue, run.message_id, [run])


async def pulled(both: Both, limit: int = 10) -> Sequence[ReadyMessage]:
    async with asyncio.timeout(10):
        return await both.source.pull(limit)


async def is_empty(both: Both) -> bool:
    state = await both.queue.look()
    return state.first_seq > state.last_seq


async def nothing_comes(both: Both, within_s: float = 0.3) -> bool:
    try:
        async with asyncio.timeout(within_s):
            await both.source.pull(10)
    except TimeoutError:
        return True
    return False


async def test_messages_are_confirmed_with_their_place_and_found_there_again(both: Both) -> None:
    messages = [message(), message("other"), message()]
    receipts = await both.queue.publish(messages)
    assert [receipt.answer for receipt in receipts] == ["stored"] * 3
    places = [receipt.place for receipt in receipts if receipt.place is not None]
    assert [place.seq for place in places] == [1, 2, 3]
    assert await both.queue.holds(places) == [True] * 3
    first = places[0]
    wrong = [
        Place(first.life, 1, "another message"),
        Place(first.life, 99, first.message_id),
        Place("another life", 1, first.message_id),
    ]
    assert await both.queue.holds(wrong) == [False] * 3
    held = await both.queue.contents(first.life, 1, 10)
    assert [found.place for found in held] == places
    assert [found.data for found in held] == [sent.data for sent in messages]
    state = await both.queue.look()
    assert (state.life, state.first_seq, state.last_seq) == (first.life, 1, 3)


async def test_a_repeated_id_is_answered_as_a_duplicate_with_the_first_place(both: Both) -> None:
    once = message()
    [first] = await both.queue.publish([once])
    [again] = await both.queue.publish([once])
    assert again.answer == "duplicate"
    assert again.place == first.place


async def test_an_id_is_remembered_for_longer_than_its_message(both: Both) -> None:
    once = message()
    await both.queue.publish([once])
    [delivery] = await pulled(both)
    delivery.tell(DONE)
    async with asyncio.timeout(10):
        while not await is_empty(both):  # noqa: ASYNC110 - the queue tells nobody
            await asyncio.sleep(0.01)
    [again] = await both.queue.publish([once])
    assert again.answer == "duplicate"
    assert again.place is not None
    assert await both.queue.holds([again.place]) == [False]


async def test_a_full_stream_refuses_what_does_not_fit_and_keeps_the_oldest(both: Both) -> None:
    receipts = await both.queue.publish([message() for _ in range(8)])
    assert [r.answer for r in receipts] == ["stored"] * 5 + ["refused"] * 3


async def test_a_message_beyond_the_limit_is_told_from_the_others(both: Both) -> None:
    receipts = await both.queue.publish([message(size=2_000_000), message()])
    assert [r.answer for r in receipts] == ["too_large", "stored"]


async def test_a_deleted_stream_is_made_again_with_its_consumers_in_another_life(
    both: Both,
) -> None:
    await both.queue.publish([message("a"), message("b")])
    before = await both.queue.look()
    await both.delete()
    after = await both.queue.look()
    assert after.life != before.life
    assert after.last_seq == 0
    await both.queue.publish([message("a")])
    await both.delete()
    lost = message("a")
    [receipt] = await both.queue.publish([lost])
    assert receipt.answer == "unknown"
    [receipt] = await both.queue.publish([lost])
    assert receipt.answer == "stored"


async def test_what_is_published_comes_once_and_goes_when_it_is_done(both: Both) -> None:
    sent = message()
    await both.queue.publish([sent])
    [delivery] = await pulled(both)
    assert delivery.data == sent.data
    assert 0 <= delivery.age_s < 10
    assert await nothing_comes(both)
    delivery.tell(DONE)
    async with asyncio.timeout(10):
        while not await is_empty(both):  # noqa: ASYNC110 - the queue tells nobody
            await asyncio.sleep(0.01)


async def test_what_nobody_acknowledges_comes_again_and_what_is_worked_on_does_not(
    both: Both,
) -> None:
    await both.queue.publish([message()])
    [first] = await pulled(both)
    for _ in range(4):
        assert await nothing_comes(both, ACK_WAIT_S / 2)
        first.tell(WORKING)
    [again] = await pulled(both)
    assert again.data == first.data
    again.tell(NEVER)
    assert await nothing_comes(both, ACK_WAIT_S * 1.5)


async def test_what_is_given_back_comes_again_after_its_delay(both: Both) -> None:
    await both.queue.publish([message()])
    [first] = await pulled(both)
    first.tell(later(0.4))
    assert await nothing_comes(both, 0.2)
    [again] = await pulled(both)
    again.tell(later(0.0))
    assert len(await pulled(both)) == 1


async def test_no_more_is_given_than_there_is_room_for(both: Both) -> None:
    await both.queue.publish([message() for _ in range(5)])
    taken = [*await pulled(both, 2)]
    assert len(taken) <= 2
    while len(taken) < 5:
        taken += await pulled(both, 2)
    assert len({id(delivery) for delivery in taken}) == 5


async def test_a_queues_depth_is_what_was_not_delivered(both: Both) -> None:
    await both.queue.publish([message() for _ in range(3)])
    taken = [*await pulled(both, 2)]
    depth = (await both.queue.depths(["default", "nobodys"]))["default"]
    assert depth.delivered >= len(taken)
    assert depth.waiting + depth.delivered == 3
    assert (await both.queue.depths(["nobodys"]))["nobodys"] == (
        await both.queue.depths(["other"])
    )["other"]


async def test_a_queue_of_which_nothing_is_wanted_takes_no_place_from_the_others(
    both: Both,
) -> None:
    wanted = {"slow": 0, "quick": 10}

    async def take(count: int) -> int:
        """So many of them, and how many more came with them."""
        got: list[ReadyMessage] = []
        async with asyncio.timeout(10):
            while len(got) < count:
                got += await both.source.pull(10, wanted.__getitem__)
        for delivery in got:
            delivery.tell(DONE)
        return len(got) - count

    await both.queue.publish([*(message("slow") for _ in range(3)), message("quick")])
    assert await take(1) == 0
    waits = asyncio.create_task(take(2))
    done, _ = await asyncio.wait([waits], timeout=0.1)
    assert not done
    wanted["slow"] = 2
    both.source.wants_more()
    assert await waits == 0
    wanted["slow"] = 0
    await both.queue.publish([message("quick")])
    assert await take(1) == 0
    wanted["slow"] = 1
    assert await take(1) == 0
