"""Commands between whose reading and appending somebody else was faster."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from horolog.application.commands import changing, registering, triggering
from horolog.application.commands.context import MAX_TRIES
from horolog.application.commands.job_spec import JobSpec
from horolog.application.decision import decide_on_occurrence
from horolog.domain.errors import KeyConflict, NotAllowed, VersionConflict
from horolog.domain.occurrence_events import Skipped
from horolog.domain.schedule import Every

if TYPE_CHECKING:
    from tests.application.commands.conftest import Meddled

    from horolog.application.commands.context import Context

SPEC = JobSpec("report", schedule=Every(60), key="k")


class NoRequests:
    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        return None


def test_a_key_that_somebody_took_a_moment_ago_is_that_job(
    context: Context, other: Context, meddled: Meddled
) -> None:
    meddled.meddling = [lambda: registering.register(other, SPEC)]
    job = registering.register(context, SPEC)
    assert job == registering.register(other, SPEC)
    (registered,) = meddled.log.stream(job.id)
    assert registered.event.actor == "bob"


def test_a_key_that_somebody_took_for_something_else_is_a_conflict(
    context: Context, other: Context, meddled: Meddled
) -> None:
    taken = JobSpec("report", schedule=Every(60), key="k", priority=7)
    meddled.meddling = [lambda: registering.register(other, taken)]
    with pytest.raises(KeyConflict, match="differs in priority"):
        registering.register(context, SPEC)


def test_a_change_that_met_another_is_decided_anew(
    context: Context, other: Context, meddled: Meddled
) -> None:
    job = registering.register(context, SPEC)

    def meanwhile() -> None:
        changing.update(other, job.id, payload={"n": 1}, policies={})

    meddled.meddling = [meanwhile]
    after = changing.pause(context, job.id)
    assert (after.version, after.status, after.definition.payload) == (3, "paused", {"n": 1})


def test_a_change_that_is_no_longer_allowed_is_refused_without_an_event(
    context: Context, other: Context, meddled: Meddled
) -> None:
    job = registering.register(context, SPEC)
    meddled.meddling = [lambda: changing.cancel(other, job.id)]
    with pytest.raises(NotAllowed, match="it is cancelled"):
        changing.pause(context, job.id)
    assert len(meddled.log.stream(job.id)) == 2


def test_a_change_of_a_version_that_has_passed_meanwhile_is_a_conflict(
    context: Context, other: Context, meddled: Meddled
) -> None:
    job = registering.register(context, SPEC)
    meddled.meddling = [lambda: changing.update(other, job.id, payload={"n": 1}, policies={})]
    with pytest.raises(VersionConflict) as conflict:
        changing.pause(context, job.id, expected_version=1)
    assert (conflict.value.seen, conflict.value.current) == (1, 2)


def test_a_job_that_is_changed_without_end_is_given_up_with_a_word(
    context: Context, other: Context, meddled: Meddled
) -> None:
    job = registering.register(context, SPEC)
    changes = [
        lambda n=n: changing.update(other, job.id, payload={"n": n}, policies={})
        for n in range(MAX_TRIES)
    ]
    meddled.meddling = list(changes)
    with pytest.raises(VersionConflict, match=f"changed by others {MAX_TRIES} times"):
        changing.pause(context, job.id)
    assert meddled.appends == MAX_TRIES + 1


def test_a_busy_job_is_cancelled_in_the_end_with_all_that_has_not_begun(
    context: Context, other: Context, meddled: Meddled
) -> None:
    """Each try meets an occurrence that moved on; so each takes fewer of them into its append."""
    job = registering.register(context, SPEC)
    ordered = [triggering.trigger(other, NoRequests(), job.id) for _ in range(3)]

    def move(number: int) -> None:
        """One of the occurrences ends in another way, between our reading and our append."""
        before = other.states.occurrence(ordered[number].id)
        assert before is not None
        skipped = Skipped(cause="overlap")
        decision, _ = decide_on_occurrence(before, [skipped])
        assert meddled.log.append([decision]).verdicts == ["accepted"]

    meddled.meddling = [lambda n=n: move(n) for n in range(2)]
    after = changing.cancel(context, job.id)
    assert after.status == "cancelled"
    assert other.states.unfinished(job.id) == []
    for occurrence in ordered:
        assert len(meddled.log.stream(occurrence.id)) == 1


def test_a_trigger_that_met_a_change_is_ordered_once(
    context: Context, other: Context, meddled: Meddled
) -> None:
    job = registering.register(context, SPEC)
    meddled.meddling = [lambda: changing.pause(other, job.id)]
    occurrence = triggering.trigger(context, NoRequests(), job.id)
    assert [o.id for o in context.states.unfinished(job.id)] == [occurrence.id]
    assert [e.event.topic for e in meddled.log.stream(job.id)] == [
        "job.registered.1",
        "job.paused.1",
        "job.triggered.1",
    ]
