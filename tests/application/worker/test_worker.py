"""The worker's loop: what it takes and leaves, what it does while the log is away, how it stops."""

import asyncio
import threading
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from horolog.application.decision import decide_on_occurrence
from horolog.application.ready import MOST_RUNS_READ, encode
from horolog.application.worker.run import Run
from horolog.domain.occurrence import decide_claim, decide_loss
from horolog.domain.occurrence_events import Attempted, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry

OTHER = Origin("worker/other")


@pytest.fixture
def ran(bench: Any) -> list[str]:
    """The keys of the runs of the handler "work"."""
    keys: list[str] = []

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        keys.append(run.key)

    return keys


def attempted_elsewhere(bench: Any, ready: Any) -> Any:
    """Another worker attempts the run; the occurrence's state since."""
    event = Attempted(attempt=ready.attempt, lease=30, actor=OTHER.actor)
    decision, state = decide_on_occurrence(ready.claimed(), [event])
    assert bench.memory.append([decision]).verdicts == ["accepted"]
    return state


async def test_a_message_of_many_runs_is_acknowledged_when_all_have_ended(bench: Any) -> None:
    gates = [asyncio.Event() for _ in range(3)]

    @bench.handlers.handles("work")
    async def work(run: Run, number: int) -> int:
        await gates[number].wait()
        return number

    runs = [bench.ready("work", {"number": number}) for number in range(3)]
    message = bench.publish(*runs)
    async with bench.working():
        gates[0].set()
        gates[2].set()
        await bench.until_ended(runs[0], runs[2])
        assert bench.topics(runs[1]) == ["claimed", "attempted"]
        assert message.said == []
        gates[1].set()
        await bench.until(lambda: message.said)
    assert message.said == ["done"]


async def test_a_message_held_for_long_is_extended(bench: Any) -> None:
    gate = asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        await gate.wait()

    message = bench.publish(bench.ready("work"))
    async with bench.working(ack_wait_s=30):
        await bench.until(lambda: bench.appends)
        for _ in range(22):
            bench.clock.advance(1)
            await bench.settled()
        assert message.said == ["working", "working"]
        gate.set()
    assert message.said == ["working", "working", "done"]


async def test_the_same_message_twice_runs_once(bench: Any, ran: list[str]) -> None:
    ready = bench.ready("work")
    copies = [bench.publish(ready), bench.publish(ready, ready), bench.publish(ready)]
    async with bench.working():
        await bench.until(lambda: all(copy.said for copy in copies))
        late = bench.publish(ready)
        await bench.until(lambda: late.said)
    assert ran == [str(ready.occurrence)]
    assert [copy.said for copy in [*copies, late]] == [["done"]] * 4
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert bench.counts["redeliveries"] == 4


async def test_what_somebody_else_runs_is_left_to_them(bench: Any, ran: list[str]) -> None:
    ready = bench.ready("work")
    attempted_elsewhere(bench, ready)
    message = bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: message.said)
    assert (ran, message.said) == ([], ["done"])


async def test_an_old_message_of_an_occurrence_that_was_claimed_since_is_let_go(
    bench: Any, ran: list[str]
) -> None:
    ready = bench.ready("work")
    state = attempted_elsewhere(bench, ready)
    now = bench.memory.stream(ready.occurrence)[-1].recorded_at
    lost = decide_loss(state, retry=Retry(), on_unknown="retry", now=now, owner=None, origin=OTHER)
    decision, state = decide_on_occurrence(state, lost)
    claim = decide_claim(state, job_version=1, token=1, window_s=30, origin=OTHER)
    again, state = decide_on_occurrence(state, [claim])
    assert bench.memory.append([decision]).verdicts == ["accepted"]
    assert bench.memory.append([again]).verdicts == ["accepted"]
    message = bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: message.said)
        assert (ran, message.said) == ([], ["done"])
        bench.publish(ready.model_copy(update={"version": state.version, "attempt": 2}))
        await bench.until_ended(ready)
    assert bench.topics(ready)[-1] == "succeeded"


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"{}", b'{"format":9,"runs":[]}', b'{"format":1,"runs":[]}', b"\xff\x00"],
)
async def test_a_stranger_s_message_harms_nothing(bench: Any, ran: list[str], data: bytes) -> None:
    ready = bench.ready("work")
    strange = bench.publish_raw(data)
    bench.publish(ready)
    async with bench.working():
        await bench.until_ended(ready)
    assert strange.said == ["never"]
    assert bench.counts["strange_messages"] == 1


async def test_a_message_of_more_runs_than_anybody_sends_is_set_aside_with_the_reason(
    bench: Any, ran: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    ready = bench.ready("work")
    strange = bench.publish_raw(encode([ready] * (MOST_RUNS_READ + 1)))
    bench.publish(ready)
    async with bench.working():
        await bench.until_ended(ready)
    assert strange.said == ["never"]
    assert bench.counts["strange_messages"] == 1
    assert f"at most {MOST_RUNS_READ} items" in caplog.text


async def test_an_invented_run_is_refused_by_the_log(bench: Any, ran: list[str]) -> None:
    ready = bench.ready("work")
    invented = bench.publish(ready.model_copy(update={"occurrence": uuid4()}))
    ahead = bench.publish(ready.model_copy(update={"version": 9, "attempt": 9}))
    async with bench.working():
        await bench.until(lambda: invented.said and ahead.said)
    assert (ran, invented.said, ahead.said) == ([], ["never"], ["never"])
    assert bench.topics(ready) == ["claimed"]


async def test_a_run_without_handler_here_is_left_to_other_workers(
    bench: Any, ran: list[str]
) -> None:
    unknown, known = bench.ready("elsewhere"), bench.ready("work")
    message = bench.publish(unknown, known)
    async with bench.working(unknown_handler_delay_s=3):
        await bench.until(lambda: message.said)
    assert message.words == [("later", 3.0)]
    assert bench.topics(unknown) == ["claimed"]
    assert ran == [str(known.occurrence)]


async def test_a_run_that_no_worker_can_do_is_dead_lettered_in_the_end(
    bench: Any, ran: list[str]
) -> None:
    ready = bench.ready("nobody", owner="team")
    message = bench.publish(ready, age_s=100)
    async with bench.working(unknown_handler_wait_s=60):
        await bench.until(lambda: message.said)
    assert bench.topics(ready) == ["claimed", "dead_lettered"]
    dead = bench.last(ready)
    assert (dead.cause, dead.owner, message.said) == ("unknown_handler", "team", ["done"])


async def test_a_flood_fills_batches_and_a_single_run_waits_for_none(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        return

    alone = bench.ready("work")
    flood = bench.claim(bench.register("work"), 1000)
    async with bench.working(concurrency=100):
        bench.publish(alone)
        await bench.until_ended(alone)
        assert bench.appends == [1, 1]
        for at in range(0, 1000, 50):
            bench.publish(*flood[at : at + 50])
        await bench.until_ended(*flood)
    assert len(bench.appends) < 40


async def test_no_more_than_the_slots_run_at_once_and_the_rest_is_not_attempted(
    bench: Any,
) -> None:
    running, gate = list[str](), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        running.append(run.key)
        await gate.wait()

    runs = bench.claim(bench.register("work"), 5)
    message = bench.publish(*runs)
    async with bench.working(concurrency=2):
        await bench.until(lambda: len(running) == 2)
        await bench.settled()
        assert len(running) == 2
        assert [bench.topics(run)[-1] for run in runs].count("claimed") == 3
        gate.set()
        await bench.until(lambda: message.said)
    assert message.said == ["done"]


async def test_a_handler_s_own_limit_blocks_nobody_else(bench: Any, ran: list[str]) -> None:
    gate = asyncio.Event()

    @bench.handlers.handles("narrow", concurrency=1)
    async def narrow(run: Run) -> None:
        await gate.wait()

    narrow_runs = bench.claim(bench.register("narrow"), 20)
    messages = [bench.publish(run) for run in narrow_runs]
    others = bench.claim(bench.register("work"), 5)
    async with bench.working(concurrency=3, give_back_delay_s=1):
        await bench.until(lambda: bench.appends)
        for run in others:
            bench.publish(run)
        for _ in range(30):
            bench.clock.advance(1)
            await bench.settled()
        await bench.until_ended(*others)
        gate.set()
    assert len(ran) == 5
    assert sum(message.said == ["later"] for message in messages) > 10


async def test_an_append_whose_answer_was_lost_is_recognised(bench: Any, ran: list[str]) -> None:
    ready = bench.ready("work")
    message = bench.publish(ready)
    bench.cut = True
    async with bench.working():
        await bench.until(lambda: bench.appends)
        bench.clock.advance(1)
        await bench.until(lambda: len(ran) == 1)
        bench.cut = True
        await bench.until(lambda: bench.topics(ready)[-1] == "succeeded")
        bench.clock.advance(1)
        await bench.until(lambda: message.said)
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert (message.said, "late_outcomes_refused" in bench.counts) == (["done"], False)


async def test_a_second_copy_is_not_taken_for_the_first_where_an_answer_was_lost(
    bench: Any, ran: list[str]
) -> None:
    """What the log holds of this worker is the first copy's attempt, and that one has run."""
    ready = bench.ready("work")
    async with bench.working():
        bench.publish(ready)
        await bench.until_ended(ready)
        bench.cut = True
        copy = bench.publish(ready)
        await bench.until(lambda: not bench.cut)
        bench.clock.advance(1)
        await bench.until(lambda: copy.said)
    assert len(ran) == 1
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert bench.counts == {"redeliveries": 1}


async def test_while_the_log_is_away_outcomes_are_kept_and_nothing_is_begun(bench: Any) -> None:
    gate, started = asyncio.Event(), list[str]()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        started.append(run.key)
        await gate.wait()

    first, second = bench.ready("work"), bench.ready("work")
    message = bench.publish(first)
    async with bench.working():
        await bench.until(lambda: started)
        bench.away = True
        gate.set()
        await bench.settled()
        pulls = len(bench.pulls)
        bench.publish(second)
        for _ in range(20):
            bench.clock.advance(0.3)
            await bench.settled()
        assert (message.said, len(started)) == ([], 1)
        assert len(bench.pulls) <= pulls + 1
        bench.away = False
        bench.clock.advance(1)
        await bench.until_ended(first, second)
    assert bench.topics(first) == ["claimed", "attempted", "succeeded"]
    assert len(started) == 2


async def test_a_late_outcome_is_refused_and_counted(bench: Any) -> None:
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
            state, retry=Retry(), on_unknown="retry", now=now, owner=None, origin=OTHER
        )
        assert bench.memory.append([decide_on_occurrence(state, lost)[0]]).verdicts == ["accepted"]
        gate.set()
        await bench.until(lambda: message.said)
    assert bench.topics(ready) == ["claimed", "attempted", "lost"]
    assert (message.said, bench.counts["late_outcomes_refused"]) == (["done"], 1)


async def test_a_transaction_whose_attempt_was_given_up_is_refused(bench: Any) -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work", transactional=True)
    async def work(run: Run) -> None:
        started.set()
        await gate.wait()

    ready = bench.ready("work")
    message = bench.publish(ready)
    async with bench.working():
        await started.wait()
        state = bench.states.occurrence(ready.occurrence)
        other = Succeeded(attempt=1, actor="worker/other")
        assert bench.memory.append([decide_on_occurrence(state, [other])[0]]).verdicts == [
            "accepted"
        ]
        gate.set()
        await bench.until(lambda: message.said)
    assert bench.last(ready).actor == "worker/other"
    assert bench.counts["late_outcomes_refused"] == 1


async def test_stopping_lets_runs_finish_within_the_grace(bench: Any) -> None:
    gate, started = asyncio.Event(), asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> str:
        started.set()
        await gate.wait()
        return "finished"

    ready = bench.ready("work")
    bench.publish(ready)
    async with bench.working(drain_grace_s=100) as stop:
        await started.wait()
        stop.set()
        await bench.settled()
        later = bench.publish(bench.ready("work"))
        gate.set()
    assert bench.last(ready).result == "finished"
    assert later.said == []


async def test_stopping_gives_back_what_does_not_finish_without_using_an_attempt(
    bench: Any,
) -> None:
    release = threading.Event()
    started: list[str] = []

    @bench.handlers.handles("coroutine")
    async def coroutine(run: Run) -> None:
        started.append(run.name)
        await asyncio.sleep(600)

    @bench.handlers.handles("thread")
    def thread(run: Run) -> None:
        started.append(run.name)
        release.wait(20)

    runs = [bench.ready("coroutine"), bench.ready("thread")]
    messages = [bench.publish(run) for run in runs]
    async with bench.working(drain_grace_s=5, concurrency=1) as stop:
        await bench.until(lambda: len(started) == 2)
        waiting = bench.claim(bench.register("coroutine"), 2)
        left = bench.publish(*waiting)
        stop.set()
    for run, message in zip(runs, messages, strict=True):
        assert bench.topics(run) == ["claimed", "attempted", "snoozed"]
        assert bench.last(run).reason == "the worker stops"
        assert bench.states.occurrence(run.occurrence).failures == 0
        assert message.said[-1] == "done"
    assert left.said in ([], ["later"])
    release.set()


async def test_a_stop_during_an_outage_ends_all_the_same(bench: Any, ran: list[str]) -> None:
    bench.publish(bench.ready("work"))
    bench.away = True
    async with bench.working() as stop:
        await bench.settled()
        stop.set()
    assert ran == []


async def test_a_queue_has_no_more_runs_at_once_than_it_may_and_leaves_room_for_others(
    bench: Any,
) -> None:
    running: dict[str, int] = {"slow": 0, "default": 0}
    most = dict(running)
    gate = asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run, queue: str) -> None:
        running[queue] += 1
        most[queue] = max(most[queue], running[queue])
        await gate.wait()
        running[queue] -= 1

    slow = [bench.ready("work", {"queue": "slow"}, queue="slow") for _ in range(6)]
    others = [bench.ready("work", {"queue": "default"}) for _ in range(6)]
    for run in [*slow, *others]:
        bench.publish(run)
    async with bench.working(queue_limits={"slow": 2}):
        await bench.until(lambda: running == {"slow": 2, "default": 6})
        await bench.settled()
        assert most == {"slow": 2, "default": 6}
        gate.set()
        await bench.until_ended(*slow, *others)
    assert most["slow"] == 2


async def test_a_flood_of_a_limited_queue_leaves_the_hands_free_for_another(bench: Any) -> None:
    """The slow queue's messages hold fifty runs each, and the quick queue's one: neither takes the
    other's place, whatever has ended in between."""
    gate, begun = asyncio.Event(), Counter[str]()

    @bench.handlers.handles("slow")
    async def slow(run: Run) -> None:
        begun["slow"] += 1
        await gate.wait()

    @bench.handlers.handles("quick")
    async def quick(run: Run) -> None:
        begun["quick"] += 1

    slow_runs = bench.claim(bench.register("slow", queue="slow"), 500)
    flood = [bench.publish(*slow_runs[at : at + 50]) for at in range(0, 500, 50)]
    async with bench.working(concurrency=100, queue_limits={"slow": 2}, give_back_delay_s=1):
        await bench.until(lambda: begun["slow"] == 2)
        quick_runs = bench.claim(bench.register("quick", queue="quick"), 60)
        for run in quick_runs:
            bench.publish(run)
        await bench.until_ended(*quick_runs)
        # Not a moment has passed, so nothing was waited for that has to be given back first.
        assert begun == {"slow": 2, "quick": 60}
        assert [message.said for message in flood] == [[]] * 10
        assert len(bench._queues["slow"]) >= 8, "no more is taken than these hands can do soon"
        gate.set()
        await bench.until_ended(*slow_runs)
    assert begun == {"slow": 500, "quick": 60}


@pytest.mark.parametrize("handler", ["narrow", "threaded"])
async def test_what_waits_for_slots_of_its_own_takes_no_place_from_other_queues(
    bench: Any, ran: list[str], handler: str
) -> None:
    """Of a handler that has a limit, and of the threads when all of them are taken."""
    gate, free = asyncio.Event(), threading.Event()

    @bench.handlers.handles("narrow", concurrency=1)
    async def narrow(run: Run) -> None:
        await gate.wait()

    @bench.handlers.handles("threaded")
    def threaded(run: Run) -> None:
        free.wait(10)

    slow_runs = bench.claim(bench.register(handler, queue="slow"), 100)
    for run in slow_runs:
        bench.publish(run)
    async with bench.working(concurrency=10, threads=1):
        await bench.until(lambda: any(len(bench.events(run)) > 1 for run in slow_runs))
        await bench.settled()
        others = bench.claim(bench.register("work", queue="quick"), 30)
        for run in others:
            bench.publish(run)
        await bench.until_ended(*others)
        free.set()
        gate.set()
    assert len(ran) == 30


async def test_a_limited_queue_is_asked_again_as_soon_as_one_of_its_runs_has_ended(
    bench: Any,
) -> None:
    gates = [asyncio.Event() for _ in range(4)]
    begun: list[int] = []

    @bench.handlers.handles("slow")
    async def slow(run: Run, number: int) -> None:
        begun.append(number)
        await gates[number].wait()

    runs = [bench.ready("slow", {"number": number}, queue="slow") for number in range(4)]
    for run in runs:
        bench.publish(run)
    async with bench.working(queue_limits={"slow": 1}):
        for number, gate in enumerate(gates):
            await bench.until(lambda number=number: len(begun) == number + 1)
            gate.set()
        await bench.until_ended(*runs)
    assert begun == [0, 1, 2, 3]
