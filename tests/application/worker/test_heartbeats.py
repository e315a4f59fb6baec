"""Long runs keep their leases, blocked loops are named, and what was taken away is stopped."""

import asyncio
import logging
import time
from typing import Any

import pytest

from horolog.application.decision import decide_on_occurrence
from horolog.application.worker.run import Run
from horolog.domain.occurrence import decide_loss
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry


async def test_only_long_runs_are_extended(bench: Any) -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("long")
    async def long(run: Run) -> None:
        started.set()
        await gate.wait()

    @bench.handlers.handles("short")
    async def short(run: Run) -> None:
        return

    long_run, short_run = bench.ready("long"), bench.ready("short")
    bench.publish(long_run, short_run)
    async with bench.working(lease_s=30, heartbeat_s=10):
        await started.wait()
        await bench.until_ended(short_run)
        bench.clock.advance(9)
        await bench.until(lambda: bench.loop)
        assert bench.extended == []
        for beats in (1, 2):
            bench.clock.advance(10)
            await bench.until(lambda beats=beats: len(bench.extended) == beats)
        gate.set()
    assert bench.extended == [[long_run.occurrence]] * 2


async def test_a_run_that_was_taken_away_is_cancelled_and_leaves_no_outcome(bench: Any) -> None:
    started, seen = asyncio.Event(), list[bool]()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            seen.append(run.cancelled)

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await started.wait()
        state = bench.states.occurrence(ready.occurrence)
        now = bench.memory.stream(ready.occurrence)[-1].recorded_at
        lost = decide_loss(
            state, retry=Retry(), on_unknown="retry", now=now, owner=None, origin=Origin("x")
        )
        bench.memory.append([decide_on_occurrence(state, lost)[0]])
        bench.clock.advance(11)
        await bench.until(lambda: "done" in message.said)
    assert seen == [True]
    assert bench.topics(ready) == ["claimed", "attempted", "lost"]
    assert bench.counts["attempts_taken_away"] == 1


async def test_a_handler_that_blocks_the_loop_is_named_and_keeps_its_lease(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ready = bench.ready("rude")

    @bench.handlers.handles("rude")
    async def rude(run: Run) -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not (bench.extended and caplog.records):
            bench.clock.advance(11)
            time.sleep(0.01)  # noqa: ASYNC251 - what this test is about

    with caplog.at_level(logging.WARNING, "horolog.worker"):
        bench.publish(ready)
        async with bench.working(blocked_loop_s=0.02):
            await bench.until_ended(ready)
    assert bench.extended[0] == [ready.occurrence]
    assert any("'rude' blocks it at" in record.getMessage() for record in caplog.records)
    assert bench.topics(ready)[-1] == "succeeded"
    assert bench.counts["loops_blocked"] >= 1


async def test_heartbeats_survive_an_outage(bench: Any) -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        await gate.wait()

    ready = bench.ready("work")
    bench.publish(ready)
    async with bench.working():
        await started.wait()
        bench.away = True
        bench.clock.advance(11)
        await bench.settled()
        bench.away = False
        bench.clock.advance(1)
        await bench.until(lambda: bench.extended)
        gate.set()
    assert bench.topics(ready)[-1] == "succeeded"
