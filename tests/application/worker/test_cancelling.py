"""A run that is asked to stop: told, cancelled where it can be, and never refused what it did."""

import asyncio
import threading
from typing import Any

import pytest

from horolog.application.decision import decide_on_occurrence
from horolog.application.ready import ReadyRun
from horolog.application.worker.run import Run
from horolog.domain.occurrence import decide_cancel
from horolog.domain.origin import Origin

ANN = Origin("ann")
STOPPED = ["claimed", "attempted", "cancel_requested", "stopped"]


def request(bench: Any, ready: ReadyRun) -> None:
    """Ann's request, in the log; nobody is told."""
    state = bench.states.occurrence(ready.occurrence)
    decision, _ = decide_on_occurrence(state, decide_cancel(state, "cancelled", origin=ANN))
    assert bench.memory.append([decision]).verdicts == ["accepted"]


def waits(bench: Any) -> asyncio.Event:
    started = asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        await asyncio.sleep(600)

    return started


async def test_a_coroutine_is_cancelled_as_soon_as_its_worker_is_told(bench: Any) -> None:
    started, ready = waits(bench), bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await started.wait()
        request(bench, ready)
        bench.tell(f"another {ready.occurrence}")
        await bench.until(lambda: bench.last(ready).topic == "occurrence.stopped.1")
    assert bench.topics(ready) == STOPPED
    assert bench.last(ready).actor == "worker/test"
    assert message.said == ["done"]
    assert "late_outcomes_refused" not in bench.counts


async def test_a_worker_that_was_not_told_finds_out_by_its_heartbeat(bench: Any) -> None:
    started, ready = waits(bench), bench.ready("work")
    bench.publish(ready)
    async with bench.working(lease_s=30, heartbeat_s=10):
        await started.wait()
        request(bench, ready)
        bench.clock.advance(10)
        await bench.until(lambda: bench.last(ready).topic == "occurrence.stopped.1")
    assert bench.topics(ready) == STOPPED


async def test_a_handler_in_a_thread_sees_that_it_should_stop(bench: Any) -> None:
    started = threading.Event()

    @bench.handlers.handles("work")
    def work(run: Run) -> str:
        started.set()
        pause = threading.Event()
        while not run.cancelled:
            pause.wait(0.001)
        return "as far as it got"

    ready = bench.ready("work")
    bench.publish(ready)
    async with bench.working():
        await bench.until(started.is_set)
        request(bench, ready)
        bench.tell(str(ready.occurrence))
        await bench.until(lambda: bench.last(ready).topic == "occurrence.succeeded.1")
    assert bench.last(ready).result == "as far as it got"


@pytest.mark.parametrize(
    ("ends", "topics"),
    [
        ("returns", ["cancel_requested", "succeeded"]),
        ("raises", ["cancel_requested", "failed", "skipped"]),
        ("gives up", ["cancel_requested", "failed", "skipped"]),
    ],
)
async def test_an_outcome_that_did_not_know_of_the_request_is_kept(
    bench: Any, ends: str, topics: list[str]
) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        await gate.wait()
        if ends == "raises":
            raise ConnectionError("down")
        if ends == "gives up":
            raise ValueError("bad")

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await started.wait()
        request(bench, ready)
        gate.set()
        await bench.until(lambda: message.said)
    assert bench.topics(ready) == ["claimed", "attempted", *topics]
    assert message.said == ["done"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_effect_of_a_transaction_that_did_not_know_of_it_is_taken_back(
    bench: Any, is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work", transactional=True)
        async def work(run: Run) -> None:
            request(bench, ready)

    else:

        @bench.handlers.handles("work", transactional=True)
        def sync_work(run: Run) -> None:
            request(bench, ready)

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: message.said)
    assert bench.topics(ready) == STOPPED


async def test_a_stopping_worker_does_not_give_a_cancelled_run_back(bench: Any) -> None:
    started, ready = waits(bench), bench.ready("work")
    bench.publish(ready)
    async with bench.working(drain_grace_s=1) as stop:
        await started.wait()
        request(bench, ready)
        stop.set()
    assert bench.topics(ready) == STOPPED


async def test_a_coroutine_that_goes_on_is_told_once_and_may_succeed(bench: Any) -> None:
    started, told = asyncio.Event(), list[bool]()
    gate = asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> str:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            told.append(run.cancelled)
        await gate.wait()
        return "cleaned up"

    ready = bench.ready("work")
    bench.publish(ready)
    async with bench.working(lease_s=30, heartbeat_s=10):
        await started.wait()
        request(bench, ready)
        bench.tell(str(ready.occurrence))
        await bench.until(lambda: told)
        bench.clock.advance(10)
        await bench.until(lambda: bench.extended)
        await bench.settled()
        gate.set()
        await bench.until(lambda: bench.last(ready).topic == "occurrence.succeeded.1")
    assert told == [True]
