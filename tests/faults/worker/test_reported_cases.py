"""Cases of public bug reports about workers, played on real servers.

Their time is driven by hand: a handler ends when it is told to or when the log has said something,
and a lease runs out because the test says that it has.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any
from uuid import UUID

from horolog import Run, Worker
from horolog.application.diagnosis import findings
from horolog.application.health import QueueHealth
from horolog.domain.retry import Retry
from horolog.infrastructure.nats.health import NatsHealth
from horolog.infrastructure.nats.stream import StreamSettings

FAST = {"lease_s": 3.0, "heartbeat_s": 0.2, "ack_wait_s": 0.5}
AT_ONCE = Retry(base=0.0, jitter=0.0)


async def test_a_run_outlasts_its_ack_wait_and_the_stop_of_its_worker_beside_an_idle_one(
    leader: Any, start_worker: Any, working: Any, tmp_path: Path
) -> None:
    """S26: did heartbeats stop with the intake of work, the idle one would begin it, too."""
    end = tmp_path / "end"
    first = start_worker(drain_grace_s=60.0, **FAST)
    (key,) = await leader.fire(leader.register("until", {"path": str(end)}, retry=AT_ONCE))
    await leader.until(lambda: leader.effects() == {str(key): 1}, "begun", look=False)
    idle, taken = Worker(), list[str]()

    @idle.handles("until")
    async def until(run: Any, path: str) -> None:
        taken.append(run.key)

    async with working(idle, **FAST):
        await leader.until(lambda: workers(leader) == 2, "both work")
        first.send_signal(signal.SIGTERM)
        # Each heartbeat moves it on by what has passed: all of this is after the stop.
        before = lease_until(leader, key)
        longer_s = 3 * FAST["ack_wait_s"]
        await leader.until(lambda: lease_until(leader, key) - before > longer_s, "kept")
        assert first.poll() is None
        end.touch()
        assert await asyncio.to_thread(first.wait, 30) == 0
    assert taken == []
    assert leader.topics(key) == ["claimed", "attempted", "succeeded"]
    assert leader.effects() == {str(key): 1}


async def test_runs_that_hang_in_all_that_the_queue_hands_out_end_and_the_next_go_on(
    leader: Any, working: Any
) -> None:
    """S41: more of them than may be held at once, and fifty quick ones behind them."""
    worker, gate, held = Worker(concurrency=20), asyncio.Event(), 4

    @worker.handles("hangs")
    async def hangs(run: Any) -> None:
        await gate.wait()

    @worker.handles("quick")
    async def quick(run: Any) -> None:
        return

    leader.stream_settings = StreamSettings(ack_wait_s=FAST["ack_wait_s"], max_ack_pending=held)
    async with working(worker, ack_wait_s=FAST["ack_wait_s"]):
        await leader.until_all(await leader.fire(leader.register("quick")), "succeeded")
        stuck = leader.register("hangs", timeout=0.2, retry=Retry(max_attempts=1))
        hung = await leader.fire(stuck, held + 1, per_message=1)
        behind = await leader.fire(leader.register("quick"), 50, per_message=1)
        await leader.until_all(hung, "dead", look=False)
        await leader.until_all(behind, "succeeded", look=False)
        # While they hang, `doctor` says so.
        waiting = await leader.fire(leader.register("hangs"), held + 1, per_message=1)
        health = NatsHealth(leader.nats_url, leader.namespace)
        try:
            async with asyncio.timeout(30):
                while not told(await health.queue_health()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            gate.set()
        await leader.until_all(waiting, "succeeded", look=False)


async def test_the_late_acknowledgement_of_a_stopped_worker_leaves_the_run_of_the_next_to_the_log(
    leader: Any, start_worker: Any, working: Any
) -> None:
    """S43: the first is stopped past its lease, the second begins, the first goes on and
    acknowledges, the second dies: the queue knows of nothing more, and the log drives it on."""
    first = start_worker(**FAST)
    job = leader.register("paced", {"seconds": [0.1, 600.0, 0.0]}, retry=AT_ONCE)
    (key,) = await leader.fire(job)
    await leader.until(lambda: leader.topics(key)[-1] == "attempted", "begun", look=False)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        lose(leader, key)
        second = start_worker(**FAST)
        await leader.until(lambda: len(leader.events(key, "attempted")) == 2, "begun again")
    finally:
        os.kill(first.pid, signal.SIGCONT)
    await leader.until(
        lambda: leader.counters().get("late_outcomes_refused", 0) == 1, "refused", look=False
    )
    first.send_signal(signal.SIGTERM)  # its acknowledgements are out when it has ended
    assert await asyncio.to_thread(first.wait, 30) == 0
    second.kill()
    second.wait()
    lose(leader, key)
    third = Worker()

    @third.handles("paced")
    async def paced(run: Run, seconds: list[float]) -> None:
        await asyncio.sleep(seconds[run.attempt - 1])

    async with working(third, **FAST):
        await leader.until_all([key], "succeeded")
    tries = ["claimed", "attempted", "lost"] * 2 + ["claimed", "attempted", "succeeded"]
    assert leader.topics(key) == tries


def lose(leader: Any, key: UUID) -> None:
    """The lease of its attempt has run out, and that is said."""
    leader.execute("UPDATE :schema.next_runs SET due_at = now() WHERE id = %s", (key,))
    leader.lose_running()


def told(queue: QueueHealth) -> bool:
    """Whether `doctor` says that no more is handed out."""
    return any("hands out nothing more" in finding.what for finding in findings(None, queue))


def lease_until(leader: Any, key: UUID) -> float:
    statement = "SELECT extract(epoch FROM due_at) FROM :schema.next_runs WHERE id = %s"
    return float(leader.execute(statement, (key,))[0][0])


def workers(leader: Any) -> int:
    ((count,),) = leader.execute("SELECT count(*) FROM :schema.instances WHERE role = 'worker'")
    return count
