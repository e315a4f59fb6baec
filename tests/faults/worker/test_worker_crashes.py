"""Workers that die, stall, or take their process with them: what log and effects say then."""

import asyncio
import os
import signal
from typing import Any
from uuid import UUID

import pytest

from horolog.domain.retry import Retry

FAST = {
    "lease_s": 1.5,
    "heartbeat_s": 0.5,
    "ack_wait_s": 1.0,
    "unknown_handler_delay_s": 0.5,
}
AT_ONCE = Retry(base=0.0, jitter=0.0)


async def test_a_worker_killed_in_the_middle_of_a_batch_costs_time_only(
    leader: Any, start_worker: Any
) -> None:
    first = start_worker(concurrency=5, **FAST)
    plain: list[UUID] = []
    exactly_once: list[UUID] = []
    for name, ids in (
        ("plain", plain), ("transactional", exactly_once), ("transactional-def", exactly_once),
    ):  # fmt: skip
        job = leader.register(name, {"seconds": 0.05}, retry=AT_ONCE)
        ids += await leader.fire(job, 30, per_message=10)
    everything = plain + exactly_once
    await leader.until(lambda: len(leader.effects()) >= 20, "some effects", look=False)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    assert leader.states_of(everything).get("succeeded", 0) < len(everything)

    start_worker(concurrency=20, **FAST)
    await leader.until_all(everything, "succeeded")
    effects = leader.effects()
    assert {effects[str(key)] for key in exactly_once} == {1}
    for key in plain:
        lost = leader.topics(key).count("lost")
        assert 1 <= effects[str(key)] <= 1 + lost
        assert leader.topics(key).count("succeeded") == 1


async def test_a_run_that_takes_its_process_with_it_ends_among_the_dead_letters(
    leader: Any, start_worker: Any
) -> None:
    worker = start_worker(**FAST)
    poison = leader.register("exits", retry=Retry(max_attempts=3, base=0.0, jitter=0.0), owner="me")
    healthy = await leader.fire(leader.register("transactional", retry=AT_ONCE), 20)
    (dead,) = await leader.fire(poison)

    def over() -> bool:
        nonlocal worker
        if worker.poll() is not None:
            worker = start_worker(**FAST)
        return leader.states_of([dead]) == {"dead": 1}

    await leader.until(over, "dead")
    await leader.until_all(healthy, "succeeded")
    assert leader.effects()[str(dead)] == 3
    assert leader.topics(dead).count("attempted") == 3
    (letter,) = leader.events(dead, "dead_lettered")
    assert (letter.cause, letter.kind, letter.owner) == ("exhausted", "lost", "me")
    assert set(leader.effects().values()) == {1, 3}


async def test_a_zombie_s_late_outcome_is_refused(leader: Any, start_worker: Any) -> None:
    zombie = start_worker(**FAST)
    job = leader.register("thread", {"seconds": 0.6}, retry=AT_ONCE)
    (key,) = await leader.fire(job)
    await leader.until(lambda: leader.topics(key)[-1] == "attempted", "attempted", look=False)
    os.kill(zombie.pid, signal.SIGSTOP)
    try:
        await leader.until(lambda: "lost" in leader.topics(key), "lost")
        start_worker(**FAST)
        await leader.until_all([key], "succeeded")
    finally:
        os.kill(zombie.pid, signal.SIGCONT)
    await leader.until(
        lambda: leader.counters().get("late_outcomes_refused", 0) == 1, "counted", look=False
    )
    assert leader.topics(key) == [
        "claimed", "attempted", "lost", "claimed", "attempted", "succeeded",
    ]  # fmt: skip
    assert f"by {zombie.pid}" != leader.events(key, "succeeded")[0].result


@pytest.mark.parametrize("name", ["plain", "transactional-def"])
async def test_sigterm_drains_and_gives_back_without_using_an_attempt(
    leader: Any, start_worker: Any, name: str
) -> None:
    worker = start_worker(drain_grace_s=0.2, cancel_grace_s=0.3, **FAST)
    (key,) = await leader.fire(leader.register(name, {"seconds": 30}))
    await leader.until(lambda: leader.topics(key)[-1] == "attempted", "attempted", look=False)
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 15) == 0
    assert leader.topics(key) == ["claimed", "attempted", "snoozed"]
    assert leader.states.occurrence(key).failures == 0
    assert leader.execute("SELECT count(*) FROM :schema.instances") == [(0,)]


async def test_postgres_restarted_under_load_costs_time_only(
    own_servers: Any, leader_of: Any, start_worker_of: Any
) -> None:
    leader = leader_of(own_servers)
    with start_worker_of(leader) as start:
        start()
        everything = list[UUID]()
        for name in ("transactional", "transactional-def"):
            job = leader.register(name, retry=AT_ONCE)
            everything += await leader.fire(job, 150, per_message=20)
        slow = leader.register("transactional", {"seconds": 0.5}, retry=AT_ONCE)
        everything += await leader.fire(slow, 20)
        await leader.until(lambda: len(leader.effects()) > 20, "some effects", look=False)
        await asyncio.to_thread(own_servers.stop_postgres, "immediate")
        await asyncio.to_thread(own_servers.start_postgres)
        await leader.until_all(everything, "succeeded", within_s=60)
    effects = leader.effects()
    assert set(effects.values()) == {1}
    assert len(effects) == len(everything)
    assert leader.counters().get("late_outcomes_refused", 0) == 0
