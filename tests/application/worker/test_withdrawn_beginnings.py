"""An attempt that is not to run any more, between its acceptance by the log and its handler's call.

That takes a while where the handler needs a thread, a connection, or its turn on the event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from threading import Event
from typing import Any

import pytest
from tests.application.worker.conftest import AsyncMemoryTransaction, Bench, MemoryTransaction
from tests.application.worker.test_cancelling import STOPPED, request
from tests.application.worker.test_late_beginnings import give_up_as_lost

from horolog.application.worker.attempt import Attempt
from horolog.application.worker.run import Run
from horolog.application.worker.running import Running


def beats(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Event:
    """Is set when a heartbeat has been through all that a lease's extension brings with it."""
    announce, beaten = bench.announce, Event()

    def announced(details: dict[str, Any], for_s: float) -> None:
        announce(details, for_s)
        if bench.extended:
            beaten.set()

    monkeypatch.setattr(bench, "announce", announced)
    return beaten


async def test_a_heartbeat_that_finds_a_lease_gone_does_not_prolong_the_trust_in_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process stood still; its heart beats before its loop goes on."""
    began, beaten = list[str](), beats(bench, monkeypatch)

    @bench.handlers.handles("report", transactional=True)
    async def report(run: Run) -> None:
        began.append(run.key)

    ready = bench.ready("report")

    @asynccontextmanager
    async def begin() -> AsyncGenerator[AsyncMemoryTransaction]:
        bench.clock.at += 40.0
        give_up_as_lost(bench, ready.occurrence)
        assert beaten.wait(10.0)  # the loop stands meanwhile
        yield AsyncMemoryTransaction(bench)

    monkeypatch.setattr(bench, "begin_async", begin)
    message = bench.publish(ready)
    async with bench.working(lease_s=30.0, heartbeat_s=10.0, blocked_loop_s=0.02):
        await bench.until(lambda: "done" in message.said)
    assert began == []
    assert bench.topics(ready) == ["claimed", "attempted", "lost"]


def waits_for_its_connection(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]
) -> list[str]:
    """A ``def`` handler; what runs of it have begun."""
    began: list[str] = []

    @bench.handlers.handles("report", transactional=True)
    def report(run: Run) -> None:
        began.append(run.key)

    @contextmanager
    def begin() -> Generator[MemoryTransaction]:
        meanwhile()
        yield MemoryTransaction(bench)

    monkeypatch.setattr(bench, "begin", begin)
    return began


async def test_a_run_that_was_cancelled_while_it_waited_for_its_connection_does_not_begin(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, told = asyncio.get_running_loop(), Event()

    def tell() -> None:
        request(bench, ready)
        bench.tell(str(ready.occurrence))
        loop.call_soon(told.set)

    def meanwhile() -> None:
        loop.call_soon_threadsafe(tell)
        assert told.wait(10.0)

    began = waits_for_its_connection(bench, monkeypatch, meanwhile)
    ready = bench.ready("report")
    message = bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: "done" in message.said)
    assert began == []
    assert bench.topics(ready) == STOPPED


async def test_a_run_whose_timeout_was_over_before_it_had_its_connection_does_not_begin(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log calls it failed by then, and its retry may run."""
    failed = Event()
    began = waits_for_its_connection(bench, monkeypatch, lambda: _assert(failed.wait(10.0)))
    ready = bench.ready("report", timeout=0.01)
    bench.publish(ready)
    async with bench.working():
        await bench.until_ended(ready)
        failed.set()
    assert began == []
    assert bench.last(ready).kind == "timeout"


async def test_a_coroutine_that_was_cancelled_before_its_first_step_is_decided(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both came in the same round of the loop: it was started, and it was told to stop."""
    began, start = list[str](), Running.start

    @bench.handlers.handles("report")
    async def report(run: Run) -> None:
        began.append(run.key)

    ready = bench.ready("report")

    def told_at_once(self: Running, attempt: Attempt) -> None:
        start(self, attempt)
        request(bench, ready)
        attempt.stop("cancelled")

    monkeypatch.setattr(Running, "start", told_at_once)
    message = bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: "done" in message.said)
    assert began == []
    assert bench.topics(ready) == STOPPED


def _assert(so: bool) -> None:
    assert so
