"""What the leader decides on a due row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from horolog.application.scanner.deciding import (
    Fired,
    Later,
    Proposal,
    Terms,
    decide_job,
    decide_occurrence,
    decide_others,
    others_of,
)
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import Completed, FiresSkipped
from horolog.domain.occurrence import OccurrenceState, Phase
from horolog.domain.occurrence_events import CancelRequested, Claimed, DeadLettered, Lost, Skipped
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry
from horolog.domain.schedule import Every, Once, Schedule

AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
TERMS = Terms(AT, {3: 7}, 30.0, Origin(actor="scanner me"))


def job(schedule: Schedule, next_fire: datetime | None, **values: Any) -> JobState:
    definition = JobDefinition(name="a.b", schedule=schedule.to_json(), **values)
    return JobState(uuid4(), 2, "active", 3, definition, next_fire=next_fire)


def minutely(behind: timedelta = timedelta(), **values: Any) -> JobState:
    return job(Every(60, anchor=AT - timedelta(days=30)), AT - behind, **values)


def due(state: JobState, unfinished: int = 0) -> DueJob:
    assert state.next_fire is not None
    return DueJob(state, state.next_fire, unfinished)


def occurrence(
    phase: Phase, *, status: Any = "active", failures: int = 0, **values: Any
) -> DueOccurrence:

    state = replace(minutely(**values), status=status)
    unfinished = OccurrenceState(
        uuid4(), state.id, 3, AT, "schedule", 4, phase, attempt=1, failures=failures
    )
    return DueOccurrence(state, unfinished, AT, 99)


def topics(answer: object) -> list[type]:
    assert isinstance(answer, Proposal)
    return [type(new.event) for new in answer.decision.events]


def test_a_fire_is_claimed_under_the_token_and_moves_the_job_on() -> None:
    state = minutely()
    answer = decide_job(due(state), TERMS)
    assert isinstance(answer, Proposal)
    [new] = answer.decision.events
    claimed = new.event
    assert isinstance(claimed, Claimed)
    assert (claimed.token, claimed.attempt, claimed.window) == (7, 1, 30.0)
    assert new.stream == occurrence_id(state.id, AT)
    assert claimed.next_fire == AT + timedelta(seconds=60)
    assert claimed.tzdata
    rows = {row.id: row for row in answer.decision.next_runs}
    assert rows[state.id].due_at == AT + timedelta(seconds=60)
    assert rows[new.stream].look
    assert answer.decision.guard.due == AT


def test_the_last_fire_completes_the_job_in_the_same_decision() -> None:
    state = job(Once(AT), AT)
    answer = decide_job(due(state), TERMS)
    assert topics(answer) == [Claimed, Completed]
    assert isinstance(answer, Proposal)
    assert answer.decision.dropped == [state.id]
    assert answer.decision.job_moves[0].status == "completed"


def test_the_last_fire_completes_the_job_also_where_it_is_dropped() -> None:
    state = job(Once(AT - timedelta(days=3)), AT - timedelta(days=3))
    assert topics(decide_job(due(state), TERMS)) == [FiresSkipped, Completed]


def test_what_a_policy_drops_is_in_the_log() -> None:
    answer = decide_job(due(minutely(timedelta(hours=1))), TERMS)
    assert sorted(kind.__name__ for kind in topics(answer)) == ["Claimed", "FiresSkipped"]


def test_a_long_backlog_is_left_due_and_taken_step_by_step() -> None:
    state = minutely(timedelta(days=20))
    steps = 0
    while state.next_fire is not None and state.next_fire <= AT:
        answer = decide_job(due(state), TERMS)
        assert isinstance(answer, Proposal)
        [row] = [row for row in answer.decision.next_runs if row.id == state.id]

        state = replace(state, next_fire=row.fire_time, fires=row.fires, version=row.version)
        steps += 1
        assert steps < 100
    assert steps > 10
    assert state.next_fire == AT + timedelta(seconds=60)


def test_a_row_that_is_not_due_yet_is_left_for_later() -> None:
    state = minutely(timedelta(seconds=-5))
    assert decide_job(due(state), TERMS) == Later(state.id, 3, AT + timedelta(seconds=5))


def test_waking_a_little_early_gives_no_fire_time_twice() -> None:
    """A day of minutes, each of which is looked at some milliseconds before its time, and at it."""
    state: JobState = minutely()
    fired: list[datetime] = []
    for minute in range(1_440):
        instant = AT + timedelta(minutes=minute)
        for early_ms in (1 + minute % 20, 1, 0):
            now = instant - timedelta(milliseconds=early_ms)
            answer = decide_job(due(state), replace(TERMS, now=now), Fired())
            if early_ms:
                assert isinstance(answer, Later)
                continue
            assert isinstance(answer, Proposal)
            [claimed] = answer.claimed
            fired.append(claimed.fire_time)
            job_id, fires = state.id, len(fired)
            [row] = [row for row in answer.decision.next_runs if row.id == job_id]
            state = replace(minutely(), id=job_id, next_fire=row.due_at, fires=fires)
    assert fired == [AT + timedelta(minutes=minute) for minute in range(1_440)]


@pytest.mark.parametrize("missed", [101, 25 * 60])
def test_any_number_of_missed_minutes_is_passed_in_few_decisions_and_the_next_is_punctual(
    missed: int,
) -> None:
    first = minutely(behind=timedelta(minutes=missed))
    due_at: datetime | None = first.next_fire
    claimed: list[datetime] = []
    decisions = 0
    while due_at is not None and due_at <= AT:
        answer = decide_job(due(replace(first, next_fire=due_at)), TERMS, Fired())
        assert isinstance(answer, Proposal)
        claimed += [run.fire_time for run in answer.claimed]
        [due_at] = [row.due_at for row in answer.decision.next_runs if row.id == first.id]
        decisions += 1
    assert (claimed, due_at) == ([AT], AT + timedelta(minutes=1))
    assert decisions <= 4


def test_in_a_partition_that_is_not_led_nothing_is_decided() -> None:
    terms = Terms(AT, {4: 1}, 30.0, Origin(actor="me"))
    assert decide_job(due(minutely()), terms) is None
    assert decide_occurrence(occurrence("retrying"), terms) is None


def test_a_fire_that_waits_for_the_run_before_it_is_looked_at_again() -> None:
    answer = decide_job(due(minutely(overlap="buffer_one"), unfinished=1), TERMS)
    assert isinstance(answer, Later)
    assert answer.waits
    assert answer.at > AT


def test_a_fire_time_that_has_run_already_is_passed_over() -> None:
    state = minutely()
    already = {occurrence_id(state.id, AT)}
    answer = decide_job(due(state), TERMS, Fired(already=already))
    assert topics(answer) == [FiresSkipped]
    assert isinstance(answer, Proposal)
    assert answer.decision.next_runs[0].due_at == AT + timedelta(seconds=60)


@pytest.mark.parametrize("phase", ["scheduled", "retrying"])
def test_an_occurrence_that_is_due_is_claimed_with_its_next_attempt(phase: Phase) -> None:
    answer = decide_occurrence(occurrence(phase), TERMS)
    assert isinstance(answer, Proposal)
    claimed = answer.decision.events[0].event
    assert isinstance(claimed, Claimed)
    assert claimed.attempt == 2
    assert [state.attempt for state in answer.claimed] == [2]


@pytest.mark.parametrize("phase", ["scheduled", "retrying", "claimed"])
def test_what_has_not_begun_of_a_cancelled_job_does_not_run(phase: Phase) -> None:
    assert topics(decide_occurrence(occurrence(phase, status="cancelled"), TERMS)) == [Skipped]


def test_a_lost_attempt_of_a_job_that_must_not_run_twice_is_claimed_again_to_be_asked_about() -> (
    None
):
    row = occurrence("running", on_unknown="dead_letter")
    assert topics(decide_occurrence(row, TERMS)) == [Lost]
    last = occurrence("running", on_unknown="dead_letter", retry=Retry(max_attempts=1))
    answer = decide_occurrence(last, TERMS)
    assert topics(answer) == [Lost, DeadLettered]
    assert isinstance(answer, Proposal)
    assert answer.decision.dead_letters[0].cause == "unknown_outcome"


def test_a_run_that_was_to_stop_and_whose_worker_died_is_over() -> None:
    assert topics(decide_occurrence(occurrence("stopping"), TERMS)) == [Lost, Skipped]


def test_the_run_before_is_cancelled_and_the_next_one_waits_for_its_end() -> None:
    state = minutely(overlap="cancel_other")
    answer = decide_job(due(state, unfinished=1), TERMS)
    assert isinstance(answer, Later)
    assert others_of(answer) == state
    runs = [occurrence(phase).occurrence for phase in ("running", "claimed", "stopping")]
    proposals = decide_others(state, runs, TERMS)
    assert [topics(each) for each in proposals] == [[CancelRequested], [Skipped]]
    assert {new.event.cause for each in proposals for new in each.decision.events} == {"overlap"}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    alone = decide_job(due(state), TERMS)
    assert topics(alone) == [Claimed]
    assert others_of(alone) is None


def test_an_attempt_whose_lease_ran_out_is_lost_and_retried() -> None:
    answer = decide_occurrence(occurrence("running"), TERMS)
    assert topics(answer) == [Lost]
    assert isinstance(answer, Proposal)
    [row] = answer.decision.next_runs
    assert row.state == "retrying"
    assert row.due_at is not None


def test_an_attempt_whose_lease_ran_out_once_too_often_is_a_dead_letter() -> None:
    row = occurrence("running", failures=4, retry=Retry(max_attempts=5))
    answer = decide_occurrence(row, TERMS)
    assert topics(answer) == [Lost, DeadLettered]
    assert isinstance(answer, Proposal)
    assert answer.decision.dead_letters[0].name == "a.b"


def test_a_claim_is_not_claimed_again() -> None:
    assert decide_occurrence(occurrence("claimed"), TERMS) is None


def test_ids_of_proposals_are_those_of_the_rows() -> None:
    row = occurrence("retrying")
    answer = decide_occurrence(row, TERMS)
    assert isinstance(answer, Proposal)
    assert isinstance(answer.id, UUID)
    assert answer.id == row.occurrence.id
