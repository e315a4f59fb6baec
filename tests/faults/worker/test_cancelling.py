"""A run that is cancelled by a client that knows Postgres alone, on real servers."""

import asyncio
from typing import Any
from uuid import UUID

from horolog import Retry, Scheduler
from horolog.application.verify import verify
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.interface.worker import Worker

STOPPED = ["claimed", "attempted", "cancel_requested", "stopped"]


def scheduler_of(leader: Any) -> Scheduler:
    return Scheduler(leader.database_url, namespace=leader.namespace)


async def begun(leader: Any, job: Any) -> UUID:
    (key,) = await leader.fire(job)
    await leader.until(lambda: leader.topics(key)[-1] == "attempted", "attempted", look=False)
    return key


async def test_a_coroutine_is_cancelled_at_once_not_at_the_next_heartbeat(
    leader: Any, working: Any
) -> None:
    worker, started = Worker(lease_s=300, heartbeat_s=100), asyncio.Event()

    @worker.handles("sleeps")
    async def sleeps(run: Any) -> None:
        started.set()
        await asyncio.sleep(600)

    async with working(worker):
        with scheduler_of(leader) as scheduler:
            one, other = leader.register("sleeps"), leader.register("sleeps")
            first, second = await begun(leader, one), await begun(leader, other)
            await started.wait()
            await asyncio.to_thread(scheduler.cancel_occurrence, first, reason="hung")
            await asyncio.to_thread(scheduler.cancel, other.id)
            await leader.until_all([first, second], "skipped", look=False, within_s=10)
    assert [leader.topics(key) for key in (first, second)] == [STOPPED, STOPPED]
    assert leader.counters().get("late_outcomes_refused", 0) == 0
    # The leader of these tests was never elected; nothing else is amiss.
    found = verify(PostgresLogScan(leader.database)).violations
    assert {violation.invariant for violation in found} <= {4}


async def test_a_lease_goes_on_while_a_run_is_asked_to_stop(leader: Any, working: Any) -> None:
    worker, gate = Worker(lease_s=1.5, heartbeat_s=0.4), asyncio.Event()

    @worker.handles("goes-on")
    async def goes_on(run: Any) -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await gate.wait()
        return "cleaned up"

    async with working(worker):
        job = leader.register("goes-on", retry=Retry(base=0.0, jitter=0.0))
        key = await begun(leader, job)
        with scheduler_of(leader) as scheduler:
            await asyncio.to_thread(scheduler.cancel_occurrence, key)
        extended = leader.execute("SELECT due_at FROM :schema.next_runs WHERE id = %s", (key,))
        await leader.until(
            lambda: (
                leader.execute("SELECT due_at FROM :schema.next_runs WHERE id = %s", (key,))
                > extended
            ),
            "extended",
            look=False,
        )
        gate.set()
        await leader.until_all([key], "succeeded", look=False)
    assert leader.topics(key) == ["claimed", "attempted", "cancel_requested", "succeeded"]
