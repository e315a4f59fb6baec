"""From any interleaving of deliveries, crashes, late outcomes and replays the invariants hold."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.errors import NotAllowed
from horolog.domain.event import Event
from horolog.domain.occurrence import (
    FINISHED,
    OccurrenceState,
    decide_claim,
    decide_discard,
    decide_failure,
    decide_loss,
    decide_recall,
    decide_replay,
    decide_skip,
    evolve,
    evolve_all,
    ordered,
)
from horolog.domain.occurrence_events import Attempted, Claimed, Snoozed, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry

NOW = datetime(2027, 1, 1, tzinfo=UTC)
ME = Origin("tester")
JOB, ONE = uuid4(), uuid4()
RETRY = Retry(max_attempts=3, base=1, jitter=0)


def scheduled() -> OccurrenceState:
    return ordered(ONE, JOB, 7, NOW, "schedule")


def claim(state: OccurrenceState) -> Claimed:
    return decide_claim(state, job_version=1, token=4, window_s=30, origin=ME)


def running() -> OccurrenceState:
    state = evolve(scheduled(), ONE, claim(scheduled()))
    return evolve(state, ONE, Attempted(attempt=1, lease=30))


def fail(state: OccurrenceState, **how: object) -> list[Event]:
    arguments = {"kind": "transport", "error": "refused", "seconds": 0.1, "after_s": None} | how
    return list(
        decide_failure(state, retry=RETRY, now=NOW, owner="billing", origin=ME, **arguments)  # pyright: ignore[reportArgumentType]
    )


def test_a_claim_numbers_the_attempt_and_waits_for_its_window() -> None:
    state = evolve(scheduled(), ONE, claim(scheduled()))
    assert (state.version, state.state, state.attempt, state.look_after_s) == (1, "claimed", 1, 30)


def test_a_failed_attempt_is_tried_again_later() -> None:
    state = evolve_all(running(), ONE, fail(running()))
    assert state is not None
    assert (state.state, state.failures, state.due) == ("retrying", 1, NOW + timedelta(seconds=1))


def test_the_last_failed_attempt_is_dead_lettered_in_the_same_breath() -> None:
    state = running()
    for _ in range(2):
        state = evolve_all(state, ONE, fail(state))
        assert state is not None
        state = evolve(state, ONE, claim(state))
        state = evolve(state, ONE, Attempted(attempt=state.attempt, lease=30))
    failed, dead = fail(state)
    assert failed.model_dump()["retry_at"] is None
    assert dead.model_dump()["cause"] == "exhausted"
    assert dead.model_dump()["owner"] == "billing"


def test_a_hopeless_failure_is_dead_lettered_at_the_first_attempt() -> None:
    events = fail(running(), kind="argument", error="no such card")
    assert [e.topic for e in events] == ["occurrence.failed.1", "occurrence.dead_lettered.1"]
    assert events[1].model_dump()["cause"] == "hopeless"


def test_an_error_text_that_postgres_cannot_store_is_mended() -> None:
    [failed] = fail(running(), error="bad \x00 and \ud800" + "x" * 5_000_000)
    error = failed.model_dump()["error"]
    assert "\x00" not in error
    assert len(error.encode()) < 20_000


def test_a_lost_attempt_counts_so_that_a_job_which_kills_its_worker_ends() -> None:
    state = running()
    for _ in range(2):
        state = evolve_all(state, ONE, lose(state))
        assert state is not None
        assert state.state == "retrying"
        state = evolve(state, ONE, claim(state))
        state = evolve(state, ONE, Attempted(attempt=state.attempt, lease=30))
    dead = evolve_all(state, ONE, lose(state))
    assert dead is not None
    assert dead.state == "dead"
    assert "lost" in dead.error


def lose(state: OccurrenceState) -> list[Event]:
    return list(decide_loss(state, retry=RETRY, on_unknown="retry", now=NOW, owner=None, origin=ME))


def test_a_lost_attempt_of_unknown_effect_can_go_to_a_person_instead() -> None:
    events = decide_loss(
        running(), retry=RETRY, on_unknown="dead_letter", now=NOW, owner="x", origin=ME
    )
    assert events[-1].model_dump()["cause"] == "unknown_outcome"


def test_a_snooze_uses_up_no_attempt_of_the_budget() -> None:
    state = evolve(running(), ONE, Snoozed(attempt=1, until=NOW + timedelta(hours=1)))
    assert (state.state, state.failures, state.due) == ("retrying", 0, NOW + timedelta(hours=1))
    assert claim(state).attempt == 2


def test_a_replay_keeps_the_key_and_gets_a_fresh_budget() -> None:
    dead = evolve_all(running(), ONE, fail(running(), kind="permanent"))
    assert dead is not None
    again = evolve_all(dead, ONE, decide_replay(dead, now=NOW, origin=ME))
    assert again is not None
    assert (again.id, again.state, again.failures, again.attempt) == (ONE, "scheduled", 0, 1)


@pytest.mark.parametrize("state", [scheduled(), running()])
def test_only_a_dead_letter_is_replayed_or_discarded(state: OccurrenceState) -> None:
    with pytest.raises(NotAllowed, match=f"it is {state.state}"):
        decide_replay(state, now=NOW, origin=ME)
    with pytest.raises(NotAllowed, match=f"it is {state.state}"):
        decide_discard(state, origin=ME)


def test_a_success_is_never_replayed() -> None:
    done = evolve(running(), ONE, Succeeded(attempt=1))
    with pytest.raises(NotAllowed, match="succeeded"):
        decide_replay(done, now=NOW, origin=ME)


def test_a_cancelled_job_stops_what_has_not_begun_and_nothing_else() -> None:
    assert decide_skip(running(), "cancelled", origin=ME) == []
    assert [e.topic for e in decide_skip(scheduled(), "cancelled", origin=ME)] == [
        "occurrence.skipped.1"
    ]


def test_only_a_claim_whose_run_has_not_begun_is_recalled() -> None:
    claimed = evolve(scheduled(), ONE, claim(scheduled()))
    [event] = decide_recall(claimed, now=NOW, origin=ME)
    assert evolve(claimed, ONE, event).state == "scheduled"
    assert decide_recall(running(), now=NOW, origin=ME) == []


STEPS = ["claim", "attempt", "succeed", "fail", "lose", "snooze", "skip", "replay", "recall"]


@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_any_order_of_what_can_happen_keeps_the_invariants(steps: list[str]) -> None:
    state = scheduled()
    events: list[Event] = []
    for step in steps:
        for event in happen(step, state):
            events.append(event)
            state = evolve(state, ONE, event)
            assert state.version == len(events)
    assert evolve_all(ordered(ONE, JOB, 7, NOW, "schedule"), ONE, events) == state
    successes = [n for n, e in enumerate(events) if isinstance(e, Succeeded)]
    assert successes in ([], [len(events) - 1])
    attempts_follow_their_claims(events)
    budget_is_kept(events)


def happen(step: str, state: OccurrenceState) -> list[Event]:
    """What the system would append if ``step`` came up now; nothing where the log would refuse."""
    if step == "claim" and state.state in ("scheduled", "retrying"):
        return [claim(state)]
    if step == "attempt" and state.state == "claimed":
        return [Attempted(attempt=state.attempt, lease=30)]
    if state.state == "running":
        match step:
            case "succeed":
                return [Succeeded(attempt=state.attempt)]
            case "fail":
                return fail(state)
            case "lose":
                return lose(state)
            case "snooze":
                return [Snoozed(attempt=state.attempt, until=NOW)]
            case _:
                pass
    if step == "skip":
        return list(decide_skip(state, "cancelled", origin=ME))
    if step == "recall":
        return list(decide_recall(state, now=NOW, origin=ME))
    if step == "replay" and state.state == "dead":
        return list(decide_replay(state, now=NOW, origin=ME))
    return []


def attempts_follow_their_claims(events: list[Event]) -> None:
    claimed: set[int] = set()
    for event in events:
        match event:
            case Claimed():
                assert event.attempt not in claimed
                claimed.add(event.attempt)
            case Attempted():
                assert event.attempt == max(claimed)
            case _:
                pass


def budget_is_kept(events: list[Event]) -> None:
    failures = 0
    for event in events:
        if event.topic in ("occurrence.failed.1", "occurrence.lost.1"):
            failures += 1
            assert failures <= RETRY.max_attempts
        elif event.topic == "occurrence.replayed.1":
            failures = 0


def test_finished_states_are_the_ones_that_leave_the_index() -> None:
    assert {"succeeded", "dead", "skipped", "discarded"} == FINISHED


def test_a_stream_that_does_not_begin_with_a_claim_is_noticed() -> None:
    with pytest.raises(AssertionError, match="begins with"):
        evolve(None, UUID(int=1), Succeeded(attempt=1))
