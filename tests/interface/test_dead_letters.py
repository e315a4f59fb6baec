"""Dead letters: looked at, tried again, closed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from horolog import Every, InvalidPolicy, NotAllowed, Scheduler, UnknownOccurrence

if TYPE_CHECKING:
    from tests.interface.conftest import Stage


def test_a_dead_letter_says_what_died_of_what_and_whose_it_is(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = stage.dead(job.id)
    (letter,) = scheduler.dead_letters()
    assert (letter.id, letter.occurrence_id, letter.job_id) == (dead.id, dead.id, job.id)
    assert (letter.name, letter.owner, letter.cause) == ("report", "billing", "hopeless")
    assert (letter.error, letter.attempt, letter.kind) == ("no such card", 1, "permanent")
    occurrence = scheduler.occurrence(dead.id)
    assert (occurrence.state, occurrence.error) == ("dead", "no such card")
    assert occurrence.reason == "hopeless"
    assert letter.to_dict()["since"] == letter.since.isoformat()


def test_a_replayed_one_is_tried_again_under_its_own_key(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = stage.dead(job.id)
    replayed = scheduler.replay(dead.id, reason="card added")
    assert (replayed.id, replayed.state, replayed.attempt) == (dead.id, "scheduled", 1)
    assert scheduler.dead_letters() == []
    with pytest.raises(NotAllowed, match="it is scheduled"):
        scheduler.replay(dead.id)
    claimed = stage.claim(dead.id)
    assert claimed.attempt == 2
    stage.succeed(stage.attempt(claimed))
    found = scheduler.occurrence(dead.id)
    assert (found.state, found.attempt) == ("succeeded", 2)
    with pytest.raises(NotAllowed, match="it is succeeded"):
        scheduler.replay(dead.id)
    events = scheduler.history(dead.id)
    assert [e.reason for e in events if e.topic == "occurrence.replayed.1"] == ["card added"]


def test_a_discarded_one_is_closed_for_good(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = stage.dead(job.id)
    discarded = scheduler.discard(dead.id, reason="no longer wanted")
    assert (discarded.state, discarded.id) == ("discarded", dead.id)
    assert discarded.finished_at is not None
    before = stage.events()
    assert scheduler.discard(dead.id) == discarded
    with pytest.raises(NotAllowed, match="it is discarded"):
        scheduler.replay(dead.id)
    assert stage.events() == before
    assert scheduler.dead_letters() == []


def test_only_a_dead_letter_can_be_replayed_or_discarded(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    claimed = stage.claim_fire(job.id)
    for command in (scheduler.replay, scheduler.discard):
        with pytest.raises(NotAllowed, match="it is claimed, and only a dead letter can be"):
            command(claimed.id)
        with pytest.raises(UnknownOccurrence, match="no occurrence has the id"):
            command(uuid4())
        with pytest.raises(UnknownOccurrence, match="'nonsense'"):
            command("nonsense")


def test_a_dead_letter_of_a_cancelled_job_is_not_replayed(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = stage.dead(job.id)
    scheduler.cancel(job.id)
    with pytest.raises(NotAllowed, match="it is cancelled"):
        scheduler.replay(dead.id)
    assert scheduler.discard(dead.id).state == "discarded"


def test_two_who_replay_at_once_replay_once(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = stage.dead(job.id)

    def replay(_: int) -> bool:
        try:
            scheduler.replay(dead.id)
        except NotAllowed:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(replay, range(4))) == [False, False, False, True]


def test_many_are_replayed_by_owner_and_handler(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = [stage.dead(job.id).id for _ in range(5)]
    assert scheduler.replay_many(owner="nobody") == 0
    assert scheduler.replay_many(owner="billing", name="report", dry_run=True) == 5
    assert len(scheduler.dead_letters(owner="billing")) == 5
    assert scheduler.replay_many(owner="billing", limit=2) == 2
    left = [letter.id for letter in scheduler.dead_letters()]
    assert left == dead[2:]
    assert scheduler.replay_many() == 3


def test_many_can_be_replayed_one_after_the_other(scheduler: Scheduler, stage: Stage) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = [stage.dead(job.id).id for _ in range(3)]
    for rate in (0, -1, 1e9):
        with pytest.raises(InvalidPolicy, match="rate="):
            scheduler.replay_many(rate=rate)
    assert scheduler.replay_many(rate=0.1) == 3
    first, last = (scheduler.occurrence(identity).due_at for identity in (dead[0], dead[-1]))
    assert first is not None
    assert last is not None
    assert 19 < (last - first).total_seconds() < 25


def test_a_listing_goes_on_after_the_last_of_the_page_before(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    dead = [stage.dead(job.id).id for _ in range(5)]
    seen: list[UUID] = []
    while page := scheduler.dead_letters(after=seen[-1] if seen else None, limit=2):
        seen += [letter.id for letter in page]
    assert seen == dead
    assert scheduler.dead_letters(name="other") == []
