"""What every reader of states promises: the state of now, as the deciders need it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from horolog.application.decision import Decision, Guard, add_to_occurrence
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import Paused, PoliciesChanged, Resumed
from horolog.domain.occurrence import OccurrenceState, decide_claim, ordered
from horolog.domain.occurrence_events import (
    Attempted,
    DeadLettered,
    Failed,
    Lost,
    Replayed,
    Skipped,
    Snoozed,
    Succeeded,
)
from horolog.domain.origin import Origin
from horolog.projections.rows import occurrence_next_run

if TYPE_CHECKING:
    from tests.contracts.conftest import Store, Story


def ordered_run(story: Story, job: JobState, hours: int) -> OccurrenceState:
    """A run that was ordered and waits in the index, as a trigger leaves it."""
    assert job.next_fire is not None
    at = job.next_fire + timedelta(hours=hours)
    state = ordered(occurrence_id(job.id, at, "trigger"), job.id, job.partition, at, "trigger")
    decision = Decision(Guard("job", job.id, job.version), job.partition)
    decision.next_runs.append(occurrence_next_run(state))
    assert story.append(decision) == ["accepted"]
    return state


def test_a_job_is_found_by_its_id_and_by_its_key(story: Story, store: Store) -> None:
    job = story.registered(key="nightly")
    other = story.registered()

    assert store.states.job_by_key("nightly") == job
    assert store.states.job(other.id) == other
    assert store.states.jobs([job.id, UUID(int=999), other.id]) == {job.id: job, other.id: other}
    assert store.states.job(UUID(int=999)) is None
    assert store.states.job_by_key("hourly") is None
    assert store.states.jobs([]) == {}


def test_a_job_moves_on_with_the_claims_of_its_fire_times(story: Story, store: Store) -> None:
    job = story.registered()
    story.claimed(job)
    story.claimed(story.job(job.id))

    moved = story.job(job.id)
    assert job.next_fire is not None
    assert moved.next_fire == job.next_fire + timedelta(minutes=2)
    assert (moved.version, moved.fires) == (job.version, 2)


def test_a_paused_job_is_not_due_and_forgets_nothing(story: Story, store: Store) -> None:
    job = story.registered()
    story.claimed(job)
    job = story.job(job.id)
    assert story.append(story.changed(job, Paused())) == ["accepted"]

    paused = story.job(job.id)
    assert (paused.status, paused.fires) == ("paused", 1)
    assert store.states.due([job.id]) == []

    assert story.append(story.changed(paused, Resumed(next_fire=job.next_fire))) == ["accepted"]
    resumed = story.job(job.id)
    assert (resumed.status, resumed.next_fire, resumed.fires) == ("active", job.next_fire, 1)


def test_an_occurrence_is_read_from_its_events_until_after_its_end(
    story: Story, store: Store
) -> None:
    claimed = story.claimed(story.registered())
    assert store.states.occurrence(claimed.id) == claimed
    running = story.went_on(claimed, Attempted(attempt=1, lease=30.0))
    assert store.states.occurrence(claimed.id) == running
    done = story.went_on(running, Succeeded(attempt=1))
    assert store.states.occurrence(claimed.id) == done
    assert store.executions() == {claimed.id: "succeeded"}


def test_an_ordered_occurrence_is_known_before_its_claim_and_after_it_was_dropped(
    story: Story, store: Store
) -> None:
    job = story.registered()
    state = ordered_run(story, job, hours=1)
    assert store.states.occurrence(state.id) == state

    skipped = story.went_on(state, Skipped(cause="cancelled"))

    assert store.states.occurrence(state.id) == skipped
    assert store.states.unfinished(job.id) == []


def test_what_nobody_ordered_is_not_there(story: Story, store: Store) -> None:
    job = story.registered()
    assert store.states.occurrence(UUID(int=999)) is None
    assert store.states.occurrence(job.id) is None
    assert store.states.unfinished(UUID(int=999)) == []
    assert store.states.due([UUID(int=999)]) == []


def test_the_unfinished_occurrences_of_a_job_come_in_bounded_pieces(
    story: Story, store: Store
) -> None:
    job = story.registered()
    others = story.registered()
    story.claimed(others)
    runs = [ordered_run(story, job, hours) for hours in (1, 2, 3)]
    first = story.claimed(job)
    story.went_on(first, Attempted(attempt=1, lease=30.0), Succeeded(attempt=1))

    ids = [state.id for state in store.states.unfinished(job.id)]
    assert ids == sorted(state.id for state in runs)
    (second,) = store.states.unfinished(job.id, after=ids[0], limit=1)
    assert second.id == ids[1]


def test_due_rows_are_read_with_their_jobs_in_the_order_of_their_time(
    story: Story, store: Store
) -> None:
    job = story.registered()
    run = ordered_run(story, job, hours=1)
    late = story.registered()
    story.claimed(late)
    late = story.job(late.id)

    found = store.states.due([run.id, UUID(int=999), late.id, job.id])

    assert [type(row) for row in found] == [DueJob, DueJob, DueOccurrence]
    assert [row.job.id for row in found] == [job.id, late.id, job.id]
    assert [row.due_at for row in found] == [job.next_fire, late.next_fire, run.fire_time]
    assert (found[0].job, found[1].job) == (job, late)
    occurrence = found[2]
    assert isinstance(occurrence, DueOccurrence)
    assert (occurrence.occurrence, occurrence.job) == (run, job)


def test_a_look_is_due_some_seconds_after_its_append_by_the_logs_clock(
    story: Story, store: Store
) -> None:
    job = story.registered()
    claim, claimed = story.claiming(job)
    appended = store.log.append([claim])

    (row,) = store.states.due([claimed.id])

    assert isinstance(row, DueOccurrence)
    assert row.due_at == appended.recorded_at + timedelta(seconds=30)
    assert row.position == appended.position
    assert row.occurrence.state == "claimed"


def test_a_failed_attempt_is_due_at_its_retry(story: Story, store: Store) -> None:
    claimed = story.claimed(story.registered())
    retry_at = claimed.fire_time + timedelta(minutes=5)
    failed = Failed(attempt=1, kind="transport", error="refused", retry_at=retry_at)
    story.went_on(claimed, Attempted(attempt=1, lease=30.0), failed)

    (row,) = store.states.due([claimed.id])

    assert isinstance(row, DueOccurrence)
    assert row.due_at == retry_at
    assert (row.occurrence.state, row.occurrence.failures) == ("retrying", 1)


def test_unfinished_runs_are_counted_where_the_overlap_policy_asks(
    story: Story, store: Store
) -> None:
    asking = story.registered(overlap="skip")
    allowing = story.registered()
    for job in (asking, allowing):
        story.claimed(job)
        story.claimed(story.job(job.id))

    counts = {
        row.job.id: row.unfinished
        for row in store.states.due([asking.id, allowing.id])
        if isinstance(row, DueJob)
    }
    assert counts == {asking.id: 2, allowing.id: 0}


def test_rows_of_a_refused_decision_are_not_written(story: Story, store: Store) -> None:
    claimed = story.claimed(story.registered())
    refused = Decision(Guard("next_run", claimed.id, 7), claimed.partition)
    add_to_occurrence(refused, claimed, [Attempted(attempt=1, lease=30.0), Succeeded(attempt=1)])

    assert story.append(refused) == ["conflict"]
    assert store.executions() == {}
    assert store.states.occurrence(claimed.id) == claimed


def test_a_loss_is_remembered_until_the_end_and_so_is_a_person_s_order(
    story: Story, store: Store
) -> None:
    """A snooze, a failure or a recall after it tells nobody what the lost attempt did."""
    now = store.now()
    state = story.claimed(story.registered())
    assert due_occurrence(store, state).lost is False
    state = story.went_on(state, Attempted(attempt=1, lease=30.0), Lost(attempt=1, retry_at=now))
    assert (due_occurrence(store, state).lost, due_occurrence(store, state).replayed) == (
        True,
        False,
    )
    for attempt in (2, 3):
        claim = decide_claim(state, job_version=1, token=1, window_s=30, origin=Origin("leader"))
        state = story.went_on(
            state,
            claim,
            Attempted(attempt=attempt, lease=30.0),
            Snoozed(attempt=attempt, until=now),
        )
        assert due_occurrence(store, state).lost
    claim = decide_claim(state, job_version=1, token=1, window_s=30, origin=Origin("leader"))
    dead = story.went_on(
        state, claim, Attempted(attempt=4, lease=30.0), DeadLettered(cause="unknown_outcome")
    )
    again = story.went_on(dead, Replayed(at=now))
    row = due_occurrence(store, again)
    assert (row.lost, row.replayed) == (True, True)


def test_the_beginning_of_a_budget_of_time_is_at_hand_where_a_job_has_one(
    story: Story, store: Store
) -> None:
    job = story.registered()
    state = story.went_on(
        story.claimed(job),
        Attempted(attempt=1, lease=30.0),
        Failed(attempt=1, kind="transport", error="refused", retry_at=store.now()),
    )
    assert due_occurrence(store, state).since is None
    changes = {"retry": {"max_elapsed": 60.0}}
    assert story.append(story.changed(story.job(job.id), PoliciesChanged(changes=changes))) == [
        "accepted"
    ]
    assert due_occurrence(store, state).since == store.log.stream(state.id)[0].recorded_at


def due_occurrence(store: Store, state: OccurrenceState) -> DueOccurrence:
    (row,) = store.states.due([state.id])
    assert isinstance(row, DueOccurrence)
    return row
