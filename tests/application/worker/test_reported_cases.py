"""Cases of public bug reports about workers, where no other test has just their sequence."""

import asyncio
from typing import Any

from horolog.application.decision import decide_on_occurrence
from horolog.application.worker.attempting import attempt_of
from horolog.application.worker.run import Run
from horolog.domain.occurrence import decide_loss
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry

OTHER = Origin("worker/other")


async def test_extensions_go_on_through_a_stop_until_the_last_run_has_ended(bench: Any) -> None:
    """S26: a job of three times the ack wait, and a stop in its middle with a longer grace: were
    heartbeats the first to stop, another worker would begin it while it runs here."""
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        await gate.wait()

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working(ack_wait_s=30, drain_grace_s=1_000) as stop:
        await started.wait()
        stop.set()
        for _ in range(9):
            words, leases = len(message.said), len(bench.extended)
            bench.clock.advance(10.5)
            await bench.until(lambda words=words: len(message.said) > words)
            await bench.until(lambda leases=leases: len(bench.extended) > leases)
        assert set(message.said) == {"working"}
        gate.set()
        await bench.until_ended(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert message.said[-1] == "done"


async def test_runs_that_hang_for_ever_give_their_slots_back_to_quick_ones(bench: Any) -> None:
    """S41: more of them than slots; each ends by its timeout, and what waits behind goes on."""

    @bench.handlers.handles("hangs")
    async def hangs(run: Run) -> None:
        await asyncio.Event().wait()

    @bench.handlers.handles("quick")
    async def quick(run: Run) -> None:
        return

    hung = [bench.ready("hangs", timeout=0.05, retry=Retry(max_attempts=1)) for _ in range(4)]
    others = [bench.ready("quick") for _ in range(50)]
    await bench.work_off(*hung, *others, concurrency=3)
    assert {bench.topics(run)[-1] for run in hung} == {"dead_lettered"}
    assert {bench.topics(run)[-1] for run in others} == {"succeeded"}


async def test_a_late_acknowledgement_leaves_the_run_of_the_other_worker_to_be_driven_on(
    bench: Any,
) -> None:
    """S43: the first worker was stopped past its lease and acknowledges at last; the second one,
    which has the run by then, dies. The message is gone; the log still knows what to look at."""
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.set()
        await gate.wait()

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await started.wait()
        state = bench.states.occurrence(ready.occurrence)
        now = bench.memory.stream(ready.occurrence)[-1].recorded_at
        lost = decide_loss(
            state, retry=Retry(base=0.0, jitter=0.0), on_unknown="retry", now=now, owner=None,
            origin=OTHER,
        )  # fmt: skip
        decision, retrying = decide_on_occurrence(state, lost)
        assert bench.memory.append([decision]).verdicts == ["accepted"]
        again = bench.claim_again(retrying)
        decision, _ = attempt_of(again, "worker/other", 30.0, 1)
        assert bench.memory.append([decision]).verdicts == ["accepted"]
        gate.set()
        await bench.until(lambda: message.said)
    assert message.said[-1] == "done"
    assert bench.topics(ready) == ["claimed", "attempted", "lost", "claimed", "attempted"]
    row = bench.memory.tables.next_runs[ready.occurrence]
    assert row.run.look
    assert row.run.attempt == 2
