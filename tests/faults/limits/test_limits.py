"""Limits hold over all machines, and a flood delays nobody but itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from horolog import JobSpec, Once, Retry

if TYPE_CHECKING:
    from tests.faults.limits.conftest import Stage


def specs(count: int, name: str = "work", seconds: float = 0.03, **values: object) -> list[JobSpec]:
    """Jobs that are due one millisecond after the other, from two seconds ago on."""
    first = datetime.now(UTC) - timedelta(seconds=2)
    return [
        JobSpec(
            name,
            schedule=Once(first + timedelta(milliseconds=n)),
            payload={"number": n, "seconds": seconds},
            **values,  # pyright: ignore[reportArgumentType]
        )
        for n in range(count)
    ]


async def test_a_keys_limit_holds_with_two_scanners_and_all_run_in_their_order(
    stage: Stage,
) -> None:
    list(stage.scheduler.register_many(specs(60, concurrency_key="card", concurrency_limit=3)))
    list(stage.scheduler.register_many(specs(60, name="other")))
    sink = stage.sinks["work"]
    async with stage.running():
        await stage.until(lambda: len(sink.ended) == 60)
        await stage.until(lambda: len(stage.sinks["other"].ended) == 60)
    assert sink.most_at_once() == 3
    order = sorted(sink.began, key=lambda number: sink.began[number])
    assert all(abs(place - number) <= 6 for place, number in enumerate(order)), order
    assert stage.ask("SELECT count(*) FROM :schema.lane_slots") == [(0,)]
    assert stage.ask("SELECT count(*) FROM :schema.next_runs") == [(0,)]


async def test_a_queues_limit_holds_over_all_partitions_and_is_raised_at_once(
    stage: Stage,
) -> None:
    stage.scheduler.limit_queue("slow", limit=4)
    list(stage.scheduler.register_many(specs(80, seconds=0.15, queue="slow")))
    sink = stage.sinks["work"]
    async with stage.running():
        await stage.until(lambda: stage.leaders() == 2)
        await stage.until(lambda: len(sink.ended) >= 4)
        (limited,) = stage.scheduler.limited_queues()
        assert (limited.queue, limited.limit) == ("slow", 4)
        assert limited.taken <= 4
        assert limited.waiting > 0
        await stage.until(lambda: len(sink.ended) >= 40)
        assert sink.most_at_once() == 4
        stage.scheduler.limit_queue("slow")
        await stage.until(lambda: len(sink.ended) == 80)
    assert stage.scheduler.limited_queues() == []


async def test_a_run_that_waits_for_its_retry_holds_no_slot(stage: Stage) -> None:
    retry = Retry(base=60, jitter=0)
    failing = [
        JobSpec(
            "work",
            schedule=Once(datetime.now(UTC) - timedelta(seconds=1)),
            payload={"number": number, "fails": 1},
            retry=retry,
            concurrency_key="card",
            concurrency_limit=1,
        )
        for number in range(5)
    ]
    list(stage.scheduler.register_many(failing))
    async with stage.running(scanners=1):
        await stage.until(lambda: len(stage.sinks["work"].ended) == 5)
    states = stage.ask("SELECT state, count(*) FROM :schema.next_runs GROUP BY state")
    assert states == [("retrying", 5)]
    assert stage.sinks["work"].most_at_once() == 1


async def test_a_rate_is_kept_by_two_scanners_together(stage: Stage) -> None:
    stage.scheduler.limit_queue("slow", rate=20)
    list(stage.scheduler.register_many(specs(60, seconds=0, queue="slow")))
    sink = stage.sinks["work"]
    async with stage.running():
        await stage.until(lambda: len(sink.ended) == 60)
    claims = sorted(
        at
        for (at,) in stage.ask(
            "SELECT extract(epoch FROM recorded_at)::float8 FROM :schema.occurrence_events"
            " WHERE topic = 'occurrence.claimed.1'"
        )
    )
    # One second's worth at once, then so many a second: no window of time ever holds more.
    for first in range(len(claims)):
        for last in range(first, len(claims)):
            assert last - first + 1 <= 20 + 20 * (claims[last] - claims[first]) + 1
    assert claims[-1] - claims[0] < 2 + 2


async def test_a_leader_that_takes_over_serves_the_lanes_it_finds(stage: Stage) -> None:
    jobs = specs(20, seconds=0.2, concurrency_key="card", concurrency_limit=1)
    list(stage.scheduler.register_many(jobs))
    sink = stage.sinks["work"]
    async with stage.running(scanners=1):
        await stage.until(lambda: len(sink.began) >= 2)
    before = len(sink.ended)
    assert before < 20
    async with stage.running(scanners=1):
        await stage.until(lambda: len(sink.ended) == 20)
    assert sink.most_at_once() == 1


async def test_a_flood_of_one_tenant_does_not_delay_another(stage: Stage) -> None:
    due = datetime.now(UTC) + timedelta(seconds=8)
    for number in range(5):
        at = due + timedelta(seconds=0.1 * number)
        stage.scheduler.register("other", schedule=Once(at), payload={"number": number})
    specs = (
        JobSpec("work", schedule=Once(due), payload={"number": n}, concurrency_key="big")
        for n in range(12_000)
    )
    # As many as this machine takes until it is nearly time: so slow it is with their runs, too.
    flood = 0
    for _ in stage.scheduler.register_many(specs, batch=500):
        flood += 1
        if flood % 500 == 0 and datetime.now(UTC) > due - timedelta(seconds=1.5):
            break
    sink = stage.sinks["other"]
    async with stage.running(scanners=1):
        await stage.until(lambda: len(sink.ended) == 5)
    begun = stage.ask(
        "SELECT j.name, x.fire_time, e.position, e.recorded_at FROM :schema.occurrence_events e"
        " JOIN :schema.executions x ON x.id = e.stream JOIN :schema.jobs j ON j.id = x.job_id"
        " WHERE e.topic = 'occurrence.attempted.1' ORDER BY e.position"
    )
    flood_at = [(position, at) for name, _, position, at in begun if name == "work"]
    assert len(flood_at) < flood
    # What is promised is a start within two seconds; so slow as the machine is now, no more of the
    # flood may begin before it than begins in two seconds.
    pace = len(flood_at) / (flood_at[-1][1] - flood_at[0][1]).total_seconds()
    for name, fire_time, position, _ in begun:
        if name == "other":
            passed = sum(fire_time < at and before < position for before, at in flood_at)
            assert passed <= 2 * pace, (passed, pace)


async def test_higher_priorities_go_first_through_a_flood(stage: Stage) -> None:
    due = datetime.now(UTC) + timedelta(seconds=5)
    for priority, name in ((0, "work"), (50, "other")):
        flood = [
            JobSpec(name, schedule=Once(due), payload={"number": n}, priority=priority)
            for n in range(1_500)
        ]
        list(stage.scheduler.register_many(flood))
    async with stage.running(scanners=1):
        await stage.until(lambda: len(stage.sinks["other"].ended) == 1_500)
        done = len(stage.sinks["work"].ended)
        await stage.until(lambda: len(stage.sinks["work"].ended) == 1_500)
    assert 0 < done < 1_500


async def test_no_more_is_claimed_of_a_queue_than_somebody_takes(stage: Stage) -> None:
    due = datetime.now(UTC) - timedelta(seconds=1)
    nobody = [JobSpec("work", schedule=Once(due), queue="nobody") for _ in range(1_000)]
    list(stage.scheduler.register_many(nobody))
    list(stage.scheduler.register_many(specs(100)))
    stage.worker.queues = ["default"]
    async with stage.running(scanners=1):
        await stage.until(lambda: len(stage.sinks["work"].ended) == 100)
        claimed = stage.ask("SELECT count(*) FROM :schema.next_runs WHERE state = 'claimed'")
    assert 0 < claimed[0][0] <= 200
