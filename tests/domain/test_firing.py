"""Every fire time is claimed or accounted for, whatever the outage and the policies."""

from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.definition import CatchUp, JobDefinition, Overlap
from horolog.domain.due_fires import Fire, omitted_ranges
from horolog.domain.firing import MAX_CLAIMS, MAX_STEP, FirePlan, plan_fires
from horolog.domain.job import JobState, advance
from horolog.domain.job_events import SkipCause
from horolog.domain.schedule import Cron, Every

START = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def job(
    *,
    seconds: float = 60,
    catch_up: CatchUp = "latest",
    overlap: Overlap = "allow",
    window_s: float = 86_400,
    limit: int | None = None,
    overlap_max: int = 100,
) -> JobState:
    schedule = Every(seconds, anchor=START, limit=limit)
    definition = JobDefinition(
        name="report",
        schedule=schedule.to_json(),
        catch_up=catch_up,
        overlap=overlap,
        overlap_max=overlap_max,
        catch_up_window=window_s,
    )
    return JobState(
        uuid4(), 1, "active", 0, definition, next_fire=START + timedelta(seconds=seconds)
    )


def drained(state: JobState, now: datetime, *, unfinished: int = 0) -> list[FirePlan]:
    """The plans of one moment, until nothing is due any more."""
    plans: list[FirePlan] = []
    while state.next_fire is not None and state.next_fire <= now:
        plan = plan_fires(state, now=now, unfinished=unfinished)
        plans.append(plan)
        if plan.wait:
            break
        ends = [(f.fires, f.next_fire) for f in plan.fires]
        ends += [(s.fires, s.next_fire) for s in plan.skipped]
        assert ends, "a plan that neither claims, nor drops, nor waits would loop"
        fires, next_fire = max(ends, key=lambda end: end[0])
        state = advance(state, next_fire, fires)
    return plans


def claimed(plans: list[FirePlan]) -> list[datetime]:
    return [fire.at for plan in plans for fire in plan.fires]


def test_a_punctual_fire_is_claimed_and_the_next_computed_from_it() -> None:
    plan = plan_fires(job(), now=START + MINUTE + timedelta(seconds=3), unfinished=0)
    assert [(f.at, f.next_fire) for f in plan.fires] == [(START + MINUTE, START + 2 * MINUTE)]
    assert plan.skipped == []


def test_a_short_delay_drops_nothing() -> None:
    now = START + timedelta(seconds=21)
    assert len(claimed(drained(job(seconds=1), now))) == 21


def test_after_an_outage_only_the_latest_runs_and_the_others_are_accounted_for() -> None:
    plans = drained(job(), START + timedelta(minutes=101))
    assert claimed(plans) == [START + timedelta(minutes=101)]
    [skipped] = plans[0].skipped
    assert (skipped.first, skipped.last, skipped.count) == (
        START + MINUTE,
        START + timedelta(minutes=100),
        100,
    )
    assert skipped.cause == "superseded"


def test_catching_up_all_runs_all_in_bounded_batches() -> None:
    plans = drained(job(catch_up="all"), START + timedelta(minutes=250))
    assert claimed(plans) == [START + n * MINUTE for n in range(1, 251)]
    assert max(len(plan.fires) for plan in plans) <= MAX_CLAIMS


def test_skipping_runs_none_of_the_missed_ones() -> None:
    plans = drained(job(catch_up="skip"), START + timedelta(minutes=10, seconds=40))
    assert claimed(plans) == []
    assert sum(s.count or 0 for plan in plans for s in plan.skipped) == 10


def test_what_is_older_than_the_window_does_not_run() -> None:
    plans = drained(job(catch_up="all", window_s=150), START + timedelta(minutes=60))
    assert claimed(plans) == [START + n * MINUTE for n in (58, 59, 60)]


def test_a_run_that_overlaps_is_skipped_and_says_so() -> None:
    plan = plan_fires(job(overlap="skip"), now=START + MINUTE, unfinished=1)
    assert plan.fires == []
    assert [s.cause for s in plan.skipped] == ["overlap"]


def test_a_buffered_run_waits_for_the_one_before_it() -> None:
    state = job(overlap="buffer_one")
    assert plan_fires(state, now=START + MINUTE, unfinished=1).wait
    plan = plan_fires(state, now=START + 3 * MINUTE, unfinished=0)
    assert [fire.at for fire in plan.fires] == [START + 3 * MINUTE]
    assert [(s.cause, s.count) for s in plan.skipped] == [("superseded", 2)]


@pytest.mark.parametrize(("unfinished", "cause"), [(0, "superseded"), (1, "overlap")])
@pytest.mark.parametrize("overlap", ["buffer_one", "cancel_other"])
def test_what_the_buffer_had_no_room_for_was_not_missed(
    overlap: Overlap, unfinished: int, cause: SkipCause
) -> None:
    """And what lies before the catch-up window was, whatever is in the buffer."""
    state = job(overlap=overlap, catch_up="all", window_s=150)
    plan = plan_fires(state, now=START + 5 * MINUTE, unfinished=unfinished)
    assert [fire.at for fire in plan.fires] == [START + 5 * MINUTE] * (1 - unfinished)
    assert [(s.cause, s.count) for s in plan.skipped] == [("misfire", 2), (cause, 2)]


def test_the_earliest_of_the_missed_ones_runs_and_the_rest_is_one_range() -> None:
    plans = drained(job(seconds=1, catch_up="earliest"), START + timedelta(hours=2))
    assert claimed(plans) == [START + timedelta(seconds=1)]
    assert [s.count for plan in plans for s in plan.skipped] == [7199]


def test_a_range_too_long_to_be_walked_is_dropped_without_a_count() -> None:
    plans = drained(job(seconds=1, catch_up="earliest", window_s=1e6), START + timedelta(days=3))
    [dropped] = plans[0].skipped
    assert (dropped.count, dropped.last) == (None, START + timedelta(days=3))
    assert dropped.next_fire == START + timedelta(days=3, seconds=1)


def test_a_backlog_is_claimed_no_faster_than_its_rate() -> None:
    state = job(catch_up="all")
    plan = plan_fires(state, now=START + timedelta(minutes=250), unfinished=0)
    assert (len(plan.fires), plan.again_after_s) == (50, 1.0)


def test_buffered_runs_wait_in_order_up_to_a_maximum() -> None:
    state = job(overlap="buffer_all", overlap_max=3)
    busy = plan_fires(state, now=START + 5 * MINUTE, unfinished=1, attended=START + 5 * MINUTE)
    assert busy.fires == []
    assert [(s.cause, s.count) for s in busy.skipped] == [("overlap", 2)]
    free = plan_fires(state, now=START + 3 * MINUTE, unfinished=0, attended=START + 3 * MINUTE)
    assert [fire.at for fire in free.fires] == [START + MINUTE]
    assert free.again_after_s is not None


def test_a_fire_time_that_waited_for_a_run_was_not_missed() -> None:
    state = job(overlap="buffer_all")
    now = START + 10 * MINUTE
    waited = plan_fires(state, now=now, unfinished=0, attended=now - timedelta(seconds=1))
    missed = plan_fires(state, now=now, unfinished=0)
    assert [fire.at for fire in waited.fires] == [START + MINUTE]
    assert [fire.at for fire in missed.fires] == [now]


def test_a_limited_schedule_ends_after_its_last_run() -> None:
    plans = drained(job(catch_up="all", limit=3), START + timedelta(minutes=60))
    assert claimed(plans) == [START + n * MINUTE for n in (1, 2, 3)]
    assert plans[-1].fires[-1].next_fire is None


@pytest.mark.parametrize("overlap", ["allow", "skip", "buffer_one", "buffer_all"])
@given(
    catch_up=st.sampled_from(["latest", "earliest", "all", "skip"]),
    seconds=st.sampled_from([7, 60, 3600]),
    outage_s=st.floats(0, 2 * 3600),
    window_s=st.floats(1, 86_400),
    unfinished=st.integers(0, 2),
)
def test_every_fire_time_is_claimed_or_dropped_once_and_in_order(
    overlap: Overlap,
    catch_up: CatchUp,
    seconds: float,
    outage_s: float,
    window_s: float,
    unfinished: int,
) -> None:
    state = job(seconds=seconds, catch_up=catch_up, overlap=overlap, window_s=window_s)
    step = timedelta(seconds=seconds)
    now = START + step + timedelta(seconds=outage_s)
    plans = drained(state, now, unfinished=unfinished)
    if plans and plans[-1].wait:
        plans.pop()
        assert unfinished
        assert claimed(plans) == []
        return
    accounted = [f.at for plan in plans for f in plan.fires]
    for plan in plans:
        if catch_up != "earliest":
            assert len(plan.fires) + sum(s.count or 0 for s in plan.skipped) <= MAX_STEP
        for s in plan.skipped:
            assert s.count is not None
            accounted += [s.first + n * step for n in range(s.count)]
            assert s.first + (s.count - 1) * step == s.last
    assert len(accounted) == len(set(accounted))
    due = START + step
    expected: list[datetime] = []
    while due <= now:
        expected.append(due)
        due += step
    assert sorted(accounted) == expected


def test_what_a_schedule_leaves_out_is_a_range_with_its_cause() -> None:
    days = [date(2027, 1, 2), date(2027, 1, 3)]
    schedule = Cron("0 12 * * *", "UTC", exclude=days)
    fire = Fire(datetime(2027, 1, 1, 12, tzinfo=UTC), datetime(2027, 1, 4, 12, tzinfo=UTC), 1)
    [omitted] = omitted_ranges(schedule, fire.at, fire)
    assert (omitted.cause, omitted.count, omitted.fires) == ("calendar", 2, 1)
    assert omitted.next_fire == fire.next_fire


def test_a_local_time_that_was_skipped_in_a_gap_is_accounted_for() -> None:
    schedule = Cron("30 2 * * *", "America/New_York", gap="skip")
    before = schedule.next_after(datetime(2027, 3, 13, tzinfo=UTC))
    assert before is not None
    following = schedule.next_after(before.at)
    assert following is not None
    [omitted] = omitted_ranges(schedule, before.at, Fire(before.at, following.at, 1))
    assert (omitted.cause, omitted.first) == ("gap", datetime(2027, 3, 14, 7, tzinfo=UTC))
