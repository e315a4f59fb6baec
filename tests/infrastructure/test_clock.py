"""The clock of a process: a wait that is cancelled ends, whatever else happens in that moment."""

import asyncio

import pytest

from horolog.infrastructure.clock import SystemClock


@pytest.mark.parametrize("moments", range(5))
async def test_a_wait_that_is_cancelled_as_its_event_comes_is_cancelled(moments: int) -> None:
    event, clock = asyncio.Event(), SystemClock()
    ended: list[str] = []

    async def wait() -> None:
        await clock.wait(event, 60.0)
        ended.append("once")
        await clock.wait(asyncio.Event(), 60.0)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    event.set()
    for _ in range(moments):
        await asyncio.sleep(0)
    waiting.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()


async def test_a_wait_ends_with_its_event_or_its_time() -> None:
    event, clock = asyncio.Event(), SystemClock()
    began = clock.monotonic()
    await clock.wait(event, 0.05)
    assert clock.monotonic() - began >= 0.049
    event.set()
    await clock.wait(event, 60.0)
    assert clock.monotonic() - began < 30
