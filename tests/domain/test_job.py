"""What may be done to a job, in which state, and what it leaves in the log."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from horolog.domain.definition import JobDefinition
from horolog.domain.errors import InvalidPolicy, InvalidSchedule, NotAllowed, VersionConflict
from horolog.domain.job import (
    JobState,
    decide_cancel,
    decide_pause,
    decide_registration,
    decide_reschedule,
    decide_resume,
    decide_trigger,
    decide_update,
    evolve,
    expect_version,
    fold,
)
from horolog.domain.job_events import JobEvent, Registered
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry
from horolog.domain.schedule import Cron, Every, Once, Schedule
from horolog.projections.rows import job_next_run

NOW = datetime(2027, 3, 1, tzinfo=UTC)
ME = Origin("ada", "because")
NIGHTLY = Cron("0 2 * * *", "America/New_York")


def registered(schedule: Schedule = NIGHTLY, **fields: Any) -> JobState:
    definition = JobDefinition(name="bill", schedule=schedule.to_json(), **fields)
    events = decide_registration(definition, partition=3, key="bill-42", now=NOW, origin=ME)
    state = fold(uuid4(), events)
    assert state is not None
    return state


def after(state: JobState, events: list[JobEvent]) -> JobState:
    for event in events:
        state = evolve(state, state.id, event)
    return state


def test_a_registration_knows_its_first_fire_time_and_who_and_why() -> None:
    definition = JobDefinition(name="bill", schedule=NIGHTLY.to_json())
    [event] = decide_registration(definition, partition=3, key=None, now=NOW, origin=ME)
    assert isinstance(event, Registered)
    assert event.next_fire == datetime(2027, 3, 1, 7, tzinfo=UTC)
    assert (event.actor, event.reason) == ("ada", "because")
    assert event.tzdata


def test_a_one_off_of_a_moment_ago_still_runs_and_one_of_yesterday_is_refused() -> None:
    assert registered(Once(NOW - timedelta(seconds=5))).next_fire == NOW - timedelta(seconds=5)
    with pytest.raises(InvalidSchedule, match="lies ahead"):
        registered(Once(NOW - timedelta(days=1)))


def test_a_paused_job_has_no_next_fire_and_a_resumed_one_goes_on_from_now() -> None:
    paused = after(registered(), list(decide_pause(registered(), origin=ME)))
    assert paused.status == "paused"
    assert job_next_run(paused) is None
    later = NOW + timedelta(days=10)
    resumed = after(paused, decide_resume(paused, now=later, origin=ME))
    assert resumed.status == "active"
    assert resumed.next_fire == datetime(2027, 3, 11, 7, tzinfo=UTC)


def test_what_is_already_so_leaves_no_event() -> None:
    state = registered()
    paused = after(state, decide_pause(state, origin=ME))
    cancelled = after(state, decide_cancel(state, origin=ME))
    assert decide_pause(paused, origin=ME) == []
    assert decide_resume(state, now=NOW, origin=ME) == []
    assert decide_cancel(cancelled, origin=ME) == []
    assert decide_reschedule(state, NIGHTLY, now=NOW, origin=ME) == []
    same = {"queue": "default", "retry": Retry()}
    assert decide_update(state, payload={}, policies=same, origin=ME) == []


def test_a_cancelled_job_takes_no_command() -> None:
    state = registered()
    cancelled = after(state, decide_cancel(state, origin=ME))
    for command in (
        lambda: decide_pause(cancelled, origin=ME),
        lambda: decide_resume(cancelled, now=NOW, origin=ME),
        lambda: decide_update(cancelled, payload={"a": 1}, policies={}, origin=ME),
        lambda: decide_reschedule(cancelled, NIGHTLY, now=NOW, origin=ME),
        lambda: decide_trigger(cancelled, at=NOW, request_id=None, salt="", origin=ME),
    ):
        with pytest.raises(NotAllowed, match="cancelled"):
            command()


def test_another_schedule_takes_over_from_now_on() -> None:
    state = registered()
    hourly = Every(3600, anchor=NOW)
    changed = after(state, decide_reschedule(state, hourly, now=NOW, origin=ME))
    assert changed.next_fire == NOW + timedelta(hours=1)
    assert changed.version == 2


def test_a_paused_job_that_is_rescheduled_stays_paused() -> None:
    state = registered()
    paused = after(state, decide_pause(state, origin=ME))
    moved = after(paused, decide_reschedule(paused, Every(60, anchor=NOW), now=NOW, origin=ME))
    assert moved.status == "paused"
    assert job_next_run(moved) is None


def test_an_update_names_only_what_changed() -> None:
    state = registered()
    events = decide_update(
        state, payload={"amount": 1}, policies={"queue": "billing", "priority": 0}, origin=ME
    )
    assert [e.topic for e in events] == ["job.payload_changed.1", "job.policies_changed.1"]
    assert events[1].model_dump()["changes"] == {"queue": "billing"}
    assert after(state, events).definition.queue == "billing"


def test_the_fire_times_of_a_pause_are_accounted_for_when_it_ends() -> None:
    state = registered()
    paused = after(state, decide_pause(state, origin=ME))
    events = decide_resume(paused, now=NOW + timedelta(days=10), origin=ME)
    assert [e.topic for e in events] == ["job.fires_skipped.1", "job.resumed.1"]
    skipped = events[0].model_dump()
    assert (skipped["count"], skipped["cause"]) == (10, "paused")
    assert after(paused, events).fires == 10


def test_a_pause_can_be_caught_up_if_asked() -> None:
    state = registered()
    paused = after(state, decide_pause(state, origin=ME))
    events = decide_resume(paused, now=NOW + timedelta(days=10), origin=ME, catch_up=True)
    assert after(paused, events).next_fire == state.next_fire


@pytest.mark.parametrize(
    ("policies", "names"),
    [
        ({"colour": "red"}, "colour"),
        ({"priority": 1000}, "priority=1000"),
        ({"overlap": "maybe"}, "overlap='maybe'"),
        ({"concurrency_key": "other"}, "concurrency key"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_name(policies: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidPolicy, match=names):
        decide_update(registered(), payload=None, policies=policies, origin=ME)


def test_a_command_on_an_old_version_is_refused_with_both_versions() -> None:
    with pytest.raises(VersionConflict) as refused:
        expect_version(registered(), 7)
    assert (refused.value.seen, refused.value.current) == (7, 1)


def test_the_same_request_is_the_same_extra_run() -> None:
    state = registered()
    one, again, other = (
        decide_trigger(state, at=NOW, request_id=r, salt=r, origin=ME)[0].occurrence_id
        for r in ("a", "a", "b")
    )
    assert one == again != other
