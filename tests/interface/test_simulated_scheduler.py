"""``horolog.testing``: the same scheduler without a server, in time that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horolog import (
    Cron,
    Every,
    InvalidSchedule,
    KeyConflict,
    NotAllowed,
    Once,
    Permanent,
    Ref,
    Retry,
    Retryable,
    Run,
    Snooze,
    Worker,
)
from horolog.testing import SimulatedScheduler

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_each_fire_time_runs_at_its_time(worker: Worker) -> None:
    seen: list[tuple[datetime, int]] = []

    @worker.handles("report")
    async def report(run: Run, amount: int) -> int:
        seen.append((run.fire_time, run.attempt))
        return amount * 2

    with SimulatedScheduler(worker, start=START) as scheduler:
        job = scheduler.register("report", schedule=Every(60), payload={"amount": 21})
        assert scheduler.advance(minutes=3) == 3
        assert seen == [(START + n * MINUTE, 1) for n in (1, 2, 3)]
        assert scheduler.now == START + 3 * MINUTE
        found = scheduler.occurrences(job_id=job.id)
        assert [(o.state, o.result, o.finished_at) for o in found] == [
            ("succeeded", 42, fire) for fire, _ in seen
        ]
        assert scheduler.job(job.id).next_run == START + 4 * MINUTE
        assert scheduler.run_due() == 0
        assert scheduler.verify().ok


def test_without_a_worker_every_run_succeeds() -> None:
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register("anything", schedule=Once(START + MINUTE), payload={"a": 1})
        scheduler.advance(to=START + timedelta(days=1))
        assert scheduler.job(job.id).status == "completed"
        assert [o.state for o in scheduler.occurrences()] == ["succeeded"]


def test_failures_are_retried_after_their_backoff_and_die_in_the_end(worker: Worker) -> None:
    tries: list[datetime] = []

    @worker.handles("flaky")
    def flaky(run: Run) -> None:
        tries.append(scheduler.now)
        if run.attempt < 3:
            raise TimeoutError("no answer")

    @worker.handles("poison")
    def poison(run: Run) -> None:
        raise Permanent("this card was never ours")

    retry = Retry(max_attempts=5, base=10, factor=2, jitter=0)
    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("flaky", schedule=Once(START), retry=retry)
        scheduler.register("poison", schedule=Once(START), owner="ann")
        scheduler.advance(hours=1)
        assert [(t - START).total_seconds() for t in tries] == [0, 10, 30]
        (letter,) = scheduler.dead_letters(owner="ann")
        assert letter.error == "Permanent: this card was never ours"
        assert letter.since == START
        scheduler.replay(letter.id)
        scheduler.run_due()
        assert scheduler.occurrence(letter.id).attempt == 2
        assert scheduler.verify().ok


def test_what_a_handler_says_is_heard(worker: Worker) -> None:
    @worker.handles("later")
    def later(run: Run) -> None:
        if run.attempt == 1:
            raise Snooze(120)
        if run.attempt == 2:
            raise Retryable("busy", after=30)

    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("later", schedule=Once(START))
        scheduler.advance(hours=1)
        (found,) = scheduler.occurrences()
        assert (found.state, found.finished_at) == ("succeeded", START + timedelta(seconds=150))


def test_references_are_resolved_and_results_are_handed_on(worker: Worker) -> None:
    got: list[Any] = []

    @worker.resolves("cards")
    async def card(ref: str) -> dict[str, str]:
        return {"card": ref}

    @worker.handles("bill")
    def bill(run: Run, card: dict[str, str]) -> int:
        got.append((card, run.last_result))
        return len(got)

    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("bill", schedule=Every(60), payload={"card": Ref("cards/42")})
        scheduler.advance(minutes=2)
    assert got == [({"card": "cards/42"}, None), ({"card": "cards/42"}, 1)]


def test_a_payload_that_does_not_fit_and_a_name_without_a_handler_die(worker: Worker) -> None:
    @worker.handles("bill")
    def bill(run: Run, amount: int) -> None: ...

    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("bill", schedule=Once(START), payload={"amount": "much"})
        scheduler.register("nobody", schedule=Once(START))
        scheduler.run_due()
        errors = sorted(letter.error for letter in scheduler.dead_letters())
        assert "has no handler 'nobody'" in errors[1]
        assert "amount: Input should be a valid integer" in errors[0]


def test_runs_take_their_time_and_overlap_as_the_policy_says() -> None:
    def states(overlap: Any) -> list[tuple[int, str]]:
        with SimulatedScheduler(start=START, takes={"slow": 150}) as scheduler:
            job = scheduler.register("slow", schedule=Every(60), overlap=overlap)
            scheduler.advance(minutes=6)
            assert scheduler.verify().ok
            begun = scheduler.occurrences(job_id=job.id)
            return [
                ((o.fire_time - START) // MINUTE, o.state) for o in begun if o.state != "claimed"
            ]

    assert states("allow") == [
        (1, "succeeded"), (2, "succeeded"), (3, "succeeded"),
        (4, "running"), (5, "running"), (6, "running"),
    ]  # fmt: skip
    assert states("skip") == [(1, "succeeded"), (4, "running")]
    assert states("buffer_one") == [(1, "succeeded"), (3, "succeeded"), (6, "running")]
    assert states("buffer_all") == [(1, "succeeded"), (2, "succeeded"), (3, "running")]


def test_a_run_that_takes_longer_than_its_timeout_fails() -> None:
    with SimulatedScheduler(start=START, takes={"slow": 150}) as scheduler:
        scheduler.register("slow", schedule=Once(START), timeout=60, retry=Retry(max_attempts=1))
        scheduler.advance(hours=1)
        (letter,) = scheduler.dead_letters()
        assert (letter.kind, letter.since) == ("timeout", START + MINUTE)


@pytest.mark.parametrize(
    ("catch_up", "ran"),
    [("latest", [60]), ("earliest", [1]), ("all", list(range(1, 61))), ("skip", [])],
)
def test_an_outage_is_caught_up_as_the_policy_says(catch_up: Any, ran: list[int]) -> None:
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register("report", schedule=Every(60), catch_up=catch_up)
        scheduler.outage(minutes=60, seconds=40)
        assert scheduler.occurrences() == []
        scheduler.advance(seconds=15)
        minutes = [(o.fire_time - START) // MINUTE for o in scheduler.occurrences(job_id=job.id)]
        assert minutes == ran
        scheduler.advance(minutes=2)
        assert len(scheduler.occurrences(job_id=job.id)) == len(ran) + 2
        assert scheduler.verify().ok


def test_the_commands_are_the_real_ones() -> None:
    with SimulatedScheduler(start=START, actor="ann") as scheduler:
        job = scheduler.register("report", schedule=Every(60), key="k")
        assert scheduler.register("report", schedule=Every(60), key="k").id == job.id
        with pytest.raises(KeyConflict):
            scheduler.register("report", schedule=Every(61), key="k")
        scheduler.pause(job.id, reason="lunch")
        scheduler.advance(minutes=5)
        scheduler.resume(job.id)
        scheduler.advance(minutes=1)
        assert len(scheduler.occurrences()) == 1
        extra = scheduler.trigger(job.id, request_id="r")
        assert scheduler.trigger(job.id, request_id="r").id == extra.id
        scheduler.run_due()
        assert scheduler.occurrence(extra.id).state == "succeeded"
        scheduler.update(job.id, labels={"team": "a"})
        assert [j.id for j in scheduler.jobs(label="team=a", status="active")] == [job.id]
        scheduler.cancel(job.id)
        with pytest.raises(NotAllowed):
            scheduler.trigger(job.id)
        topics = [e.topic for e in scheduler.history("k")]
        assert topics == [
            "job.registered.1", "job.paused.1", "job.fires_skipped.1", "job.resumed.1",
            "job.triggered.1", "job.policies_changed.1", "job.cancelled.1",
        ]  # fmt: skip
        assert {e.actor for e in scheduler.history("k")} == {"ann"}
        assert scheduler.position() == scheduler.log(limit=1000)[-1].position
        follower = scheduler.follow(after=0)
        assert next(follower).topic == "job.registered.1"
        follower.close()
        assert scheduler.verify().ok


def test_the_same_test_gives_the_same_log() -> None:
    def ids() -> list[str]:
        with SimulatedScheduler(start=START) as scheduler:
            job = scheduler.register("report", schedule=Every(60))
            scheduler.trigger(job.id)
            scheduler.advance(minutes=2)
            return [str(event.stream) for event in scheduler.log()]

    assert ids() == ids()


def test_a_transactional_handler_gets_what_the_test_gives(worker: Worker) -> None:
    @worker.handles("pay", transactional=True)
    def pay(run: Run) -> str:
        return run.connection

    with SimulatedScheduler(worker, start=START, connect=lambda: "a connection") as scheduler:
        scheduler.register("pay", schedule=Once(START))
        scheduler.run_due()
        assert scheduler.occurrences()[0].result == "a connection"
    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("pay", schedule=Once(START))
        with pytest.raises(NotAllowed, match="connect="):
            scheduler.run_due()


def test_the_clock_goes_forwards_only() -> None:
    with SimulatedScheduler(start=START) as scheduler:
        with pytest.raises(InvalidSchedule, match="lies ahead"):
            scheduler.advance(to=START - MINUTE)
        with pytest.raises(InvalidSchedule, match="has no zone"):
            scheduler.outage(to=datetime(2028, 1, 1))  # noqa: DTZ001
        with pytest.raises(InvalidSchedule, match="lies ahead"):
            scheduler.advance(to=START + MINUTE, minutes=1)


async def test_it_serves_tests_that_run_a_loop_themselves(worker: Worker) -> None:
    @worker.handles("report")
    async def report(run: Run) -> int:
        return run.attempt

    with SimulatedScheduler(worker, start=START) as scheduler:
        scheduler.register("report", schedule=Cron("0 * * * *", "UTC"))
        assert scheduler.advance(hours=2) == 2


@pytest.mark.parametrize("catch_up", ["latest", "earliest", "all", "skip"])
def test_jitter_is_no_lateness(catch_up: Any) -> None:
    """Runs that begin later by their jitter, or by more than the window, are not missed ones."""
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register(
            "report", schedule=Every(7200, jitter=7000), catch_up=catch_up, catch_up_window=60
        )
        scheduler.advance(days=1)
        found = scheduler.occurrences(job_id=job.id)
        assert len(found) >= 11
        assert all(o.since == (o.jittered_at or o.fire_time) for o in found)
        assert {e.topic for e in scheduler.history(job.id)} == {"job.registered.1"}
        assert scheduler.verify().ok


@pytest.mark.parametrize(("catch_up", "ran"), [("latest", 0), ("earliest", 1), ("all", 10)])
def test_after_an_outage_a_fire_time_whose_jitter_has_not_passed_keeps_its_turn(
    catch_up: Any, ran: int
) -> None:
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register("report", schedule=Every(3600, jitter=3500), catch_up=catch_up)
        last = START + timedelta(hours=11)
        scheduler.outage(to=last)
        assert scheduler.run_due() == ran
        assert scheduler.job(job.id).next_run == last
        scheduler.advance(minutes=59)
        found = scheduler.occurrences(job_id=job.id, newest_first=True)[0]
        assert found.fire_time == last
        assert found.since == found.jittered_at
        assert scheduler.verify().ok


def test_the_next_run_waits_for_the_end_of_the_one_that_it_cancels(worker: Worker) -> None:
    @worker.handles("slow")
    def slow(run: Run) -> None: ...

    with SimulatedScheduler(worker, start=START, takes={"slow": 90.0}) as scheduler:
        job = scheduler.register("slow", schedule=Every(60), overlap="cancel_other")
        scheduler.advance(minutes=4)
        found = scheduler.occurrences(job_id=job.id)
        # A simulated run goes on when it is asked to stop, and so it succeeds.
        assert found[0].state == "succeeded"
        topics = [event.topic for event in scheduler.history(found[0].id)]
        assert topics[2:] == ["occurrence.cancel_requested.1", "occurrence.succeeded.1"]
        assert scheduler.log(topics="occurrence.cancel_requested.1")[0].reason is None
        assert scheduler.verify().violations == []
        explained = scheduler.explain(found[0].id).steps
        assert any("asked the running attempt to stop" in step.what for step in explained)


def test_one_run_is_cancelled_before_it_begins_and_its_job_goes_on(worker: Worker) -> None:
    with SimulatedScheduler(worker, start=START) as scheduler:
        job = scheduler.register("report", schedule=Every(60))
        extra = scheduler.trigger(job.id, at=START + MINUTE / 2)
        assert scheduler.cancel_occurrence(extra.id, reason="not today").state == "skipped"
        scheduler.advance(minutes=2)
        assert scheduler.occurrence(extra.id).state == "skipped"
        assert scheduler.job(job.id).fires == 2


def test_what_is_due_next_is_told_in_simulated_time() -> None:
    with SimulatedScheduler() as scheduler:
        later = scheduler.register("b", schedule=Every(60))
        sooner = scheduler.register("a", schedule=Every(10))
        until = scheduler.now + timedelta(seconds=61)
        assert [entry.id for entry in scheduler.due_next(until)] == [sooner.id, later.id]
        assert [entry.name for entry in scheduler.due_next(until, limit=1)] == ["a"]
