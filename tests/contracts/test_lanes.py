"""What every log promises of lanes: never more slots than the limit, never faster than the rate."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from horolog.domain.lanes import Lane
from horolog.domain.occurrence_events import (
    Attempted,
    DeadLettered,
    Failed,
    Recalled,
    Skipped,
    Succeeded,
)

if TYPE_CHECKING:
    from tests.contracts.conftest import Store, Story

    from horolog.application.decision import Decision
    from horolog.domain.occurrence import OccurrenceState

CARD = Lane('key:card \\ "42"\n', limit=2)


def claim(story: Story, *lanes: Lane) -> tuple[Decision, OccurrenceState]:
    decision, state = story.claiming(story.registered())
    decision.lanes = list(lanes)
    return decision, state


def test_a_batch_gets_as_many_slots_as_there_are_in_its_order(story: Story, store: Store) -> None:
    claims = [claim(story, CARD) for _ in range(4)]
    stranger, _ = claim(story)
    verdicts = story.append(*(decision for decision, _ in claims), stranger)
    assert verdicts == ["accepted", "accepted", "full", "full", "accepted"]
    assert [store.log.stream(state.id) != [] for _, state in claims] == [True, True, False, False]


def test_slots_are_counted_over_all_appends(story: Story) -> None:
    first, _ = claim(story, CARD)
    second, _ = claim(story, CARD)
    third, _ = claim(story, CARD)
    assert story.append(first) == ["accepted"]
    assert story.append(second) == ["accepted"]
    assert story.append(third) == ["full"]
    assert story.append(third) == ["full"], "a refused decision may be tried again"


@pytest.mark.parametrize("end", ["succeeded", "dead", "retrying", "recalled", "skipped"])
def test_whatever_ends_an_attempt_gives_its_slot_back(story: Story, store: Store, end: str) -> None:
    one = replace(CARD, limit=1)
    decision, state = claim(story, one)
    following, _ = claim(story, one)
    assert story.append(decision, following) == ["accepted", "full"]
    if end not in ("recalled", "skipped"):
        state = story.went_on(state, Attempted(attempt=1, lease=30.0))
        assert story.append(following) == ["full"], "a run holds its slot"
    match end:
        case "succeeded":
            story.went_on(state, Succeeded(attempt=1))
        case "dead":
            failed = Failed(attempt=1, kind="permanent", error="no")
            story.went_on(state, failed, DeadLettered(cause="hopeless", error="no"))
        case "retrying":
            retry_at = store.now() + timedelta(hours=1)
            story.went_on(state, Failed(attempt=1, kind="transport", error="no", retry_at=retry_at))
        case "recalled":
            story.went_on(state, Recalled(at=store.now()))
        case _:
            story.went_on(state, Skipped(cause="cancelled"))
    assert story.append(following) == ["accepted"]


def test_a_decision_needs_a_slot_in_each_of_its_lanes(story: Story) -> None:
    queue = Lane("queue:slow", limit=1)
    both, state = claim(story, CARD, queue)
    full_in_queue, _ = claim(story, CARD, queue)
    key_only, _ = claim(story, CARD)
    assert story.append(both) == ["accepted"]
    assert story.append(full_in_queue, key_only) == ["full", "full"], "never too many"
    assert story.append(key_only) == ["accepted"], "what was refused took no slot"
    running = story.went_on(state, Attempted(attempt=1, lease=30.0))
    story.went_on(running, Succeeded(attempt=1))
    assert story.append(full_in_queue) == ["accepted"]


def test_a_decision_that_fails_elsewhere_takes_no_slot(story: Story) -> None:
    one = replace(CARD, limit=1)
    job = story.registered()
    decision, _ = story.claiming(job)
    again, _ = story.claiming(job)
    stale, _ = claim(story, one)
    stale.guard = replace(stale.guard, version=99)
    other, _ = claim(story, one)
    assert story.append(decision) == ["accepted"]
    again.lanes = [one]
    assert story.append(again, stale, other) == ["conflict", "conflict", "accepted"]


def test_each_claim_keeps_to_its_own_limit(story: Story) -> None:
    first, _ = claim(story, CARD)
    strict, _ = claim(story, replace(CARD, limit=1))
    generous, _ = claim(story, replace(CARD, limit=5))
    closed, _ = claim(story, replace(CARD, limit=0))
    assert story.append(first, strict, generous) == ["accepted", "full", "accepted"]
    assert story.append(closed) == ["full"], "no slot at all: it is to wait behind others"


def test_a_rate_lets_one_seconds_worth_through_at_once_and_fills_evenly(
    story: Story, store: Store
) -> None:
    slow = Lane("key:slow", rate=0.0001)
    claims = [claim(story, slow)[0] for _ in range(3)]
    assert story.append(*claims) == ["accepted", "full", "full"]
    store.later()
    assert story.append(claims[1]) == ["full"]

    fast = Lane("key:fast", rate=3.5)
    claims = [claim(story, fast)[0] for _ in range(5)]
    assert story.append(*claims[:2]) == ["accepted", "accepted"]
    assert story.append(*claims[2:]) == ["accepted", "full", "full"]


def test_the_next_of_a_rate_passes_when_its_time_has_come(story: Story, store: Store) -> None:
    lane = Lane("key:quick", rate=500.0)
    claims = [claim(story, lane)[0] for _ in range(502)]
    assert story.append(*claims).count("accepted") in (500, 501)
    for _ in range(1_000):
        store.later()
        if story.append(claims[-1]) == ["accepted"]:
            break
    else:
        pytest.fail("the bucket does not fill")
