"""Somebody else on the ready subject, who repeats what is published there, or invents it."""

import asyncio
import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from tests.faults.system.system import System


class Stranger:
    """``heard`` are the messages of the scanners; ``repeated`` counts those sent again."""

    def __init__(self, system: System, share: float, seed: int) -> None:
        self._system = system
        self._share = share
        self._rng = random.Random(seed)
        self.heard: list[bytes] = []
        self.repeated = 0

    async def listen(self, ready: Event, stop: Event) -> None:
        """Repeats a share of what is published, whoever goes away meanwhile, until told to stop."""
        # What it says itself does not come back to it: else each message would never end.
        client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
            self._system.settings.nats_url(), no_echo=True, error_cb=_unheard,
            max_reconnect_attempts=-1, reconnect_time_wait=0.1,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip

        async def repeat(message: Msg) -> None:
            self.heard.append(message.data)
            if self._rng.random() < self._share:
                await _say(client, message.subject, message.data)
                self.repeated += 1

        await client.subscribe(f"{self._system.namespace}.ready.*", cb=repeat)  # pyright: ignore[reportUnknownMemberType]
        await client.flush()
        ready.set()
        await asyncio.to_thread(stop.wait)
        await client.close()


@contextmanager
def a_stranger_repeats(system: System, *, share: float = 1.0, seed: int = 0) -> Generator[Stranger]:
    """While the block lasts, that share of all messages is in the stream twice."""
    stranger, ready, stop = Stranger(system, share, seed), Event(), Event()
    thread = Thread(target=lambda: asyncio.run(stranger.listen(ready, stop)), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield stranger
    finally:
        stop.set()
        thread.join(10)


def publish(system: System, contents: Sequence[bytes], queue: str = "default") -> None:
    """Puts messages into the stream, as whoever may publish there can."""

    async def say(jetstream: JetStreamContext) -> None:
        for content in contents:
            await jetstream.publish(f"{system.namespace}.ready.{queue}", content)

    system.on_nats(say)


async def _say(client: Client, subject: str, data: bytes) -> None:
    try:
        await client.publish(subject, data)
    except (nats.errors.Error, OSError):
        return


async def _unheard(error: Exception) -> None:
    """Servers go away in these tests: no news."""
