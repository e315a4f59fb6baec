"""What every log promises: one order, guards that hold, refusals that stop nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from horolog.application.decision import Decision, Guard, NewEvent, decide_on_occurrence
from horolog.application.log import Fences
from horolog.domain.errors import UnreadableEvent, VersionConflict
from horolog.domain.job_events import Cancelled, Paused, PayloadChanged
from horolog.domain.occurrence_events import (
    Attempted,
    CancelRequested,
    Discarded,
    Failed,
    Replayed,
    Skipped,
    Stopped,
    Succeeded,
)

if TYPE_CHECKING:
    from tests.contracts.conftest import Store, Story


def test_an_append_says_where_the_log_stands_and_when_by_its_own_clock(
    story: Story, store: Store
) -> None:
    before = store.now()
    empty = store.log.append([])
    first = store.log.append([story.registration()])
    second = store.log.append([story.registration(), story.registration()])

    assert (empty.verdicts, empty.position) == ([], 0)
    assert (first.verdicts, first.position) == (["accepted"], 1)
    assert (second.verdicts, second.position) == (["accepted", "accepted"], 3)
    assert before <= first.recorded_at <= second.recorded_at <= store.now()
    (recorded,) = store.log.log(after=0, limit=1)
    assert recorded.recorded_at == first.recorded_at


def test_events_come_back_as_they_went_in_and_in_the_order_of_the_batch(
    story: Story, store: Store
) -> None:
    job = story.registered()
    claim, claimed = story.claiming(job)
    other = story.registration()
    pause = story.changed(story.registered(), Paused(actor="ann", reason="holiday"))
    assert story.append(claim, other, pause) == ["accepted"] * 3

    log = store.log.log()
    assert [e.position for e in log] == sorted({e.position for e in log})
    assert [(e.stream, e.version) for e in log[-3:]] == [
        (claimed.id, 1),
        (other.guard.id, 1),
        (pause.guard.id, 2),
    ]
    assert [e.event for e in log[-3:]] == [d.events[0].event for d in (claim, other, pause)]
    assert len({e.recorded_at for e in log[-3:]}) == 1


def test_a_stream_has_consecutive_versions_and_is_read_on_from_any_of_them(
    story: Story, store: Store
) -> None:
    job = story.registered()
    for amount in range(1, 4):
        job = story.job(job.id)
        assert story.append(story.changed(job, PayloadChanged(payload={"n": amount}))) == [
            "accepted"
        ]
    story.registered()

    assert [e.version for e in store.log.stream(job.id)] == [1, 2, 3, 4]
    assert [e.version for e in store.log.stream(job.id, after=1, limit=2)] == [2, 3]
    assert store.log.stream(UUID(int=999)) == []


def test_the_log_is_read_in_bounded_pieces_and_by_topic(story: Story, store: Store) -> None:
    jobs = [story.registered() for _ in range(3)]
    for job in jobs:
        assert story.append(story.changed(job, Paused())) == ["accepted"]

    assert [e.position for e in store.log.log(after=2, limit=3)] == [3, 4, 5]
    paused = store.log.log(topics=["job.paused.1", "job.cancelled.1"], limit=2)
    assert [e.stream for e in paused] == [jobs[0].id, jobs[1].id]
    rest = store.log.log(after=paused[-1].position, topics=["job.paused.1"])
    assert [e.stream for e in rest] == [jobs[2].id]
    assert store.log.log(after=6) == []


def test_a_refused_decision_leaves_nothing_and_its_neighbours_go_on(
    story: Story, store: Store
) -> None:
    job = story.registered()
    outdated = story.changed(job, Cancelled())
    assert story.append(story.changed(job, Paused())) == ["accepted"]
    before, after = story.registration(), story.registration()

    appended = store.log.append([before, outdated, after])

    assert appended.verdicts == ["accepted", "conflict", "accepted"]
    assert story.job(job.id).status == "paused"
    assert [e.event.topic for e in store.log.stream(job.id)] == ["job.registered.1", "job.paused.1"]
    assert len(store.log.log()) == 4
    assert len(store.states.jobs([before.guard.id, after.guard.id])) == 2


def test_a_job_is_registered_once(story: Story, store: Store) -> None:
    decision = story.registration()
    assert story.append(decision) == ["accepted"]
    assert story.append(decision) == ["conflict"]
    assert len(store.log.log()) == 1


def test_a_key_belongs_to_one_job(story: Story, store: Store) -> None:
    story.registered(key="nightly")
    with pytest.raises(VersionConflict):
        story.append(story.registration(), story.registration(key="nightly"))
    assert len(store.log.log()) == 1


def test_two_copies_of_one_decision_in_a_batch_are_one(story: Story, store: Store) -> None:
    claimed = story.claimed(story.registered())
    attempt = Decision(Guard("next_run", claimed.id, claimed.version), claimed.partition)
    attempt.events.append(NewEvent(claimed.id, 2, Attempted(attempt=1, lease=30.0)))
    neighbour = story.registration()

    verdicts = story.append(attempt, attempt, neighbour)

    assert verdicts == ["accepted", "conflict", "accepted"]
    assert [e.version for e in store.log.stream(claimed.id)] == [1, 2]


def test_a_version_alone_is_not_enough_to_attempt_what_is_not_claimed(
    story: Story, store: Store
) -> None:
    """A forged message names the version that a run is at, and calls it claimed."""
    retry_at = store.now() + timedelta(hours=1)
    waits = story.went_on(
        story.claimed(story.registered()),
        Attempted(attempt=1, lease=30.0),
        Failed(attempt=1, kind="transport", error="refused", retry_at=retry_at),
    )
    claimed = story.claimed(story.registered())
    for forged in (
        replace(waits, state="claimed"),
        replace(waits, state="running"),
        replace(claimed, attempt=7),
    ):
        event = Attempted(attempt=forged.attempt, lease=30.0)
        decision, _ = decide_on_occurrence(forged, [event])
        assert story.append(decision) == ["conflict"]
    assert len(store.log.stream(waits.id)) == 3
    honest, _ = decide_on_occurrence(claimed, [Attempted(attempt=1, lease=30.0)])
    assert story.append(honest) == ["accepted"]


def test_a_run_that_is_asked_to_stop_stays_in_the_index_until_it_has_ended(
    story: Story, store: Store
) -> None:
    running = story.went_on(story.claimed(story.registered()), Attempted(attempt=1, lease=30.0))
    stopping = story.went_on(running, CancelRequested())
    (indexed,) = store.states.unfinished(running.job_id)
    assert (indexed.state, indexed.version, indexed.attempt) == ("stopping", 3, 1)
    assert story.append(decide_on_occurrence(running, [Succeeded(attempt=1)])[0]) == ["conflict"]
    story.went_on(stopping, Stopped(attempt=1, cause="cancelled"))
    assert store.states.unfinished(running.job_id) == []
    assert store.executions()[running.id] == "skipped"


def test_what_wants_a_place_that_is_taken_is_refused_alone(story: Story, store: Store) -> None:
    dead = story.dead(story.registered())
    late = Decision(Guard("nothing", dead.id, dead.version), dead.partition)
    late.events.append(NewEvent(dead.id, dead.version, Succeeded(attempt=1)))
    neighbour = story.registration()

    assert story.append(late, neighbour) == ["conflict", "accepted"]
    assert len(store.log.stream(dead.id)) == dead.version


def test_a_claim_needs_the_job_as_it_was_read(story: Story, store: Store) -> None:
    job = story.registered()
    claim, claimed = story.claiming(job)
    assert story.append(story.changed(job, Cancelled())) == ["accepted"]

    assert story.append(claim) == ["conflict"]
    assert store.log.stream(claimed.id) == []


def test_a_claim_of_what_was_there_before_needs_the_job_as_it_was_read(
    story: Story, store: Store
) -> None:
    job = story.registered()
    dead = story.dead(job)
    waiting = story.went_on(dead, Replayed(at=dead.fire_time))
    story.fences = Fences("a", {})
    claim = story.claiming_again(waiting, story.job(job.id))
    change = story.changed(story.job(job.id), PayloadChanged(payload={"n": 1}))
    assert story.append(change) == ["accepted"]

    assert story.append(claim, story.registration()) == ["conflict", "accepted"]
    assert len(store.log.stream(waiting.id)) == waiting.version
    assert story.append(story.claiming_again(waiting, story.job(job.id))) == ["accepted"]


def test_a_claim_for_an_earlier_definition_does_not_mind_a_change(story: Story) -> None:
    job = story.registered()
    dead = story.dead(job)
    waiting = story.went_on(dead, Replayed(at=dead.fire_time))
    story.fences = Fences("a", {})
    claim = story.claiming_again(replace(waiting, definition_version=1), story.job(job.id))
    change = story.changed(story.job(job.id), PayloadChanged(payload={"n": 1}))
    assert story.append(change) == ["accepted"]

    assert story.append(claim) == ["accepted"]


def test_a_fire_time_is_claimed_once(story: Story, store: Store) -> None:
    job = story.registered()
    first, claimed = story.claiming(job)
    second, _ = story.claiming(job, token=2)

    assert story.append(first) == ["accepted"]
    assert story.append(second) == ["conflict"]
    assert len(store.log.stream(claimed.id)) == 1


def test_a_claim_guarded_by_its_due_time_meets_a_moved_job(story: Story) -> None:
    job = story.registered()
    claim, _ = story.claiming(job)
    claim.guard = Guard("next_run", job.id, job.version, job.next_fire)
    story.claimed(job)
    assert story.job(job.id).version == job.version
    assert story.append(claim) == ["conflict"]


def test_a_change_decided_before_a_claim_does_not_move_the_job_back(
    story: Story, store: Store
) -> None:
    job = story.registered()
    change = story.changed(job, PayloadChanged(payload={"n": 1}))
    story.claimed(job)

    assert story.append(change) == ["conflict"]
    moved = story.job(job.id)
    assert story.append(story.changed(moved, PayloadChanged(payload={"n": 1}))) == ["accepted"]
    assert job.next_fire is not None
    assert story.job(job.id).next_fire == job.next_fire + timedelta(minutes=1)
    assert story.job(job.id).fires == 1


def test_a_late_outcome_is_refused(story: Story) -> None:
    claimed = story.claimed(story.registered())
    running = story.went_on(claimed, Attempted(attempt=1, lease=30.0))
    story.went_on(running, Skipped(cause="cancelled"))
    late = Decision(Guard("next_run", running.id, running.version), running.partition)
    late.events.append(NewEvent(running.id, running.version + 1, Succeeded(attempt=1)))

    assert story.append(late) == ["conflict"]


def test_a_partition_has_one_leader_while_the_lease_runs(story: Story, store: Store) -> None:
    assert story.append(story.election("a", version=0)) == ["accepted"]
    store.later()
    assert story.append(story.election("b", version=1)) == ["conflict"]
    assert story.append(story.election("b", version=0)) == ["conflict"]
    leading = store.leading(story.partition)
    assert (leading.version, leading.instance, leading.token) == (1, "a", 1)


def test_an_ended_lease_is_taken_over_and_the_leader_may_be_elected_anew(
    story: Story, store: Store
) -> None:
    story.fences = Fences("a", {})
    assert story.append(story.election("a", version=0)) == ["accepted"]
    assert story.append(story.election("a", version=1, lease_s=0.0)) == ["accepted"]
    store.later()
    story.fences = None
    assert story.append(story.election("b", version=2)) == ["accepted"]
    leading = store.leading(story.partition)
    assert (leading.version, leading.instance, leading.token) == (3, "b", 3)


def test_a_claim_under_an_old_token_is_stale_and_counted(story: Story, store: Store) -> None:
    job = story.registered()
    claim, _ = story.claiming(job)
    assert story.append(story.election("a", version=0, lease_s=0.0)) == ["accepted"]
    store.later()
    assert story.append(story.election("b", version=1)) == ["accepted"]
    elsewhere = story.registration()
    elsewhere.partition = story.partition + 1

    appended = store.log.append([claim, elsewhere], Fences("a", {story.partition: 1}))

    assert appended.verdicts == ["stale", "accepted"]
    assert store.counter("stale_claims_refused") == 1
    assert store.log.append([claim], Fences("b", {story.partition: 1})).verdicts == ["stale"]
    assert store.log.append([claim], Fences("b", {story.partition: 2})).verdicts == ["accepted"]


def test_a_replayed_dead_letter_leaves_the_dead_and_the_ended(story: Story, store: Store) -> None:
    dead = story.dead(story.registered())
    assert store.dead_letters() == {dead.id}
    assert store.executions() == {dead.id: "dead"}

    replayed = story.went_on(dead, Replayed(at=dead.fire_time))

    assert store.dead_letters() == set()
    assert store.executions() == {}
    assert [state.id for state in store.states.unfinished(dead.job_id)] == [replayed.id]


def test_a_discarded_dead_letter_leaves_the_dead_and_stays_ended(
    story: Story, store: Store
) -> None:
    dead = story.dead(story.registered())

    story.went_on(dead, Discarded(reason="the card is gone"))

    assert store.dead_letters() == set()
    assert store.executions() == {dead.id: "discarded"}
    assert store.states.unfinished(dead.job_id) == []


def test_two_who_replay_at_once_replay_once(story: Story, store: Store) -> None:
    dead = story.dead(story.registered())
    story.went_on(dead, Replayed(at=dead.fire_time, actor="ann"))
    second = Decision(Guard("nothing", dead.id, dead.version), dead.partition)
    replayed = Replayed(at=dead.fire_time, actor="bob")
    second.events.append(NewEvent(dead.id, dead.version + 1, replayed))

    assert story.append(second) == ["conflict"]
    assert [e.event.actor for e in store.log.log(topics=["occurrence.replayed.1"])] == ["ann"]


@pytest.mark.parametrize(
    ("topic", "state"),
    [("job.exploded.7", b"{}"), ("job.paused.1", b'{"reason": 7}'), ("job.paused.1", b'{"rea')],
)
def test_an_event_that_cannot_be_read_is_named_with_its_position(
    story: Story, store: Store, topic: str, state: bytes
) -> None:
    job = story.registered()
    store.plant(job.id, 2, topic, state)
    later = story.registered()

    for read in (lambda: store.log.log(), lambda: store.log.stream(job.id)):
        with pytest.raises(UnreadableEvent) as caught:
            read()
        assert "position 2" in str(caught.value)
        assert f"{job.id}:2" in str(caught.value)
    assert [e.stream for e in store.log.log(after=2)] == [later.id]
