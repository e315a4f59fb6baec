"""A scanner that is told to stop: it publishes what it can, and waits for nothing that is not."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.application.scanner.test_publishing import HandClock, World

from horolog.application.scanner.scanner import Scanner


class NoNews:
    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        await stop.wait()


class Resigns:
    resigned = False

    async def resign(self) -> None:
        self.resigned = True


def leaving(world: World) -> tuple[Scanner, Resigns]:
    """A scanner that has only its outbox left."""
    leadership = Resigns()
    parts: Any = SimpleNamespace(
        territory=world.territory, outbox=world.outbox, publishing=world.publishing,
        republishing=world.republishing, leadership=leadership, agenda=None, sweep=None,
        claiming=None, looking=None, serving=None, lanes=None, gauging=None, headroom=None,
        watching=SimpleNamespace(step=None), raising=SimpleNamespace(step=None),
        receiving=SimpleNamespace(step=None),
    )  # fmt: skip
    scanner = Scanner(parts, NoNews(), world.clock, world.settings, world.signals, {})
    return scanner, leadership


async def leave(world: World) -> Resigns:
    scanner, leadership = leaving(world)
    stop = asyncio.Event()
    stop.set()
    # The clock is driven by hand: a scanner that goes round without a pause would do so for ever.
    async with asyncio.timeout(5):
        await scanner.run(stop)
    return leadership


async def test_who_leaves_publishes_what_it_has_claimed() -> None:
    world = World()
    ids = world.claim(300)
    assert (await leave(world)).resigned
    assert world.queue.runs() == ids


async def test_who_leaves_does_not_go_round_for_what_is_in_no_hands() -> None:
    world = World()
    world.claim(1)
    world.outbox.take(1)
    assert isinstance(world.clock, HandClock), "time does not pass by itself"
    assert (await leave(world)).resigned
