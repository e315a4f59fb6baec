"""From any interleaving of deliveries, crashes, late outcomes and replays the invariants hold."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.definition import OnUnknown
from horolog.domain.errors import NotAllowed
from horolog.domain.event import Event
from horolog.domain.occurrence import (
    FINISHED,
    OccurrenceState,
    decide_cancel,
    decide_claim,
    decide_discard,
    decide_failure,
    decide_loss,
    decide_recall,
    decide_replay,
    decide_skip,
    decide_snooze,
    decide_stopped,
    decide_unknown,
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


def test_a_lost_attempt_is_claimed_again_whatever_its_job_says_for_only_a_worker_can_ask() -> None:
    for policy in ("retry", "dead_letter"):
        [lost] = decide_loss(
            running(), retry=RETRY, on_unknown=policy, now=NOW, owner="x", origin=ME
        )
        assert lost.model_dump()["retry_at"] is not None


@pytest.mark.parametrize(
    ("policy", "cause"), [("retry", "exhausted"), ("dead_letter", "unknown_outcome")]
)
def test_a_lost_attempt_that_was_the_last_one_goes_to_a_person(
    policy: OnUnknown, cause: str
) -> None:
    once = Retry(max_attempts=1)
    lost, dead = decide_loss(
        running(), retry=once, on_unknown=policy, now=NOW, owner="x", origin=ME
    )
    assert (lost.model_dump()["retry_at"], dead.model_dump()["cause"]) == (None, cause)


def test_an_attempt_whose_forerunner_nobody_knows_of_can_go_to_a_person() -> None:
    events = decide_unknown(running(), seconds=0.1, owner="x", origin=ME)
    dead = evolve_all(running(), ONE, events)
    assert dead is not None
    assert (dead.state, events[-1].model_dump()["cause"]) == ("dead", "unknown_outcome")
    assert decide_replay(dead, now=NOW, origin=ME)


def stopping() -> OccurrenceState:
    [request] = decide_cancel(running(), "cancelled", origin=ME)
    return evolve(running(), ONE, request)


def test_a_cancelled_run_goes_on_until_it_has_stopped() -> None:
    state = stopping()
    assert (state.state, state.attempt, state.look_after_s) == ("stopping", 1, 30)
    assert not state.finished
    assert decide_cancel(state, "cancelled", origin=ME) == []
    ended = evolve_all(state, ONE, decide_stopped(state, seconds=1, origin=ME))
    assert ended is not None
    assert ended.state == "skipped"


def test_a_run_that_ignores_its_cancellation_may_succeed() -> None:
    assert evolve(stopping(), ONE, Succeeded(attempt=1)).state == "succeeded"


@pytest.mark.parametrize("ending", ["fail", "hopeless", "lose", "snooze", "unknown"])
def test_a_cancelled_run_is_not_tried_again_however_it_ends(ending: str) -> None:
    events = {
        "fail": lambda: fail(stopping()),
        "hopeless": lambda: fail(stopping(), kind="argument"),
        "lose": lambda: lose(stopping()),
        "snooze": lambda: decide_snooze(stopping(), until=NOW, seconds=1, origin=ME),
        "unknown": lambda: decide_unknown(stopping(), seconds=1, owner=None, origin=ME),
    }[ending]()
    ended = evolve_all(stopping(), ONE, events)
    assert ended is not None
    assert ended.state == "skipped"


def test_what_has_not_begun_is_cancelled_at_once_and_what_has_ended_is_left_alone() -> None:
    claimed = evolve(scheduled(), ONE, claim(scheduled()))
    for state in (scheduled(), claimed):
        assert [e.topic for e in decide_cancel(state, "overlap", origin=ME)] == [
            "occurrence.skipped.1"
        ]
    assert decide_cancel(evolve(running(), ONE, Succeeded(attempt=1)), "overlap", origin=ME) == []


def test_a_worker_whose_job_was_cancelled_says_so_before_its_run_has_stopped() -> None:
    events = decide_stopped(running(), seconds=1, origin=ME)
    assert [e.topic for e in events] == ["occurrence.cancel_requested.1", "occurrence.stopped.1"]


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


STEPS = [
    "claim", "attempt", "succeed", "fail", "lose", "snooze", "unknown", "cancel", "stop", "skip",
    "replay", "recall",
]  # fmt: skip


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
    cancelled_runs_are_not_tried_again(events)


def happen(step: str, state: OccurrenceState) -> list[Event]:
    """What the system would append if ``step`` came up now; nothing where the log would refuse."""
    if step == "claim" and state.state in ("scheduled", "retrying"):
        return [claim(state)]
    if step == "attempt" and state.state == "claimed":
        return [Attempted(attempt=state.attempt, lease=30)]
    if state.state in ("running", "stopping") and (ended := end(step, state)):
        return ended
    return order(step, state)


def end(step: str, state: OccurrenceState) -> list[Event]:
    """What a worker, or the leader in its place, says of a running attempt."""
    match step:
        case "succeed":
            return [Succeeded(attempt=state.attempt)]
        case "fail":
            return fail(state)
        case "lose":
            return lose(state)
        case "snooze":
            return list(decide_snooze(state, until=NOW, seconds=1, origin=ME))
        case "unknown":
            return list(decide_unknown(state, seconds=1, owner=None, origin=ME))
        case "stop":
            return list(decide_stopped(state, seconds=1, origin=ME))
        case _:
            return []


def order(step: str, state: OccurrenceState) -> list[Event]:
    """What somebody orders from outside."""
    if step == "cancel":
        return list(decide_cancel(state, "cancelled", origin=ME))
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


def cancelled_runs_are_not_tried_again(events: list[Event]) -> None:
    topics = [event.topic.split(".")[1] for event in events]
    if "cancel_requested" in topics:
        after = topics[topics.index("cancel_requested") + 1 :]
        assert after in (
            [], ["stopped"], ["succeeded"], ["failed", "skipped"], ["lost", "skipped"],
        )  # fmt: skip


def test_finished_states_are_the_ones_that_leave_the_index() -> None:
    assert {"succeeded", "dead", "skipped", "discarded"} == FINISHED


def test_a_stream_that_does_not_begin_with_a_claim_is_noticed() -> None:
    with pytest.raises(AssertionError, match="begins with"):
        evolve(None, UUID(int=1), Succeeded(attempt=1))
