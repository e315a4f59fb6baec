"""Who changed a job, and why an occurrence is what it is, as the log tells it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from horolog import Every, Scheduler, UnknownJob, UnknownOccurrence
from horolog.domain.ids import partition_stream
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from tests.interface.conftest import Stage


def test_changes_say_who_changed_which_field_from_what_to_what_and_why(
    scheduler: Scheduler, database_url: str, namespace: str
) -> None:
    job = scheduler.register(
        "invoices.bill",
        schedule=Every(60),
        payload={"amount": 10, "card": {"id": 4}},
        key="bill-42",
        labels={"region": "us"},
        reason="asked for by sales",
    )
    with Scheduler(database_url, namespace=namespace, actor="bob") as bob:
        bob.reschedule(job.id, Every(30), reason="too slow")
        bob.update(job.id, payload={"amount": 12, "card": {"id": 4}}, timeout=9.0, reason="dearer")
        bob.pause(job.id)
        bob.resume(job.id)
    scheduler.cancel(job.id, reason="done")

    found = scheduler.changes("bill-42")
    assert [change.what for change in found] == [
        "registered",
        "rescheduled",
        "payload_changed",
        "policies_changed",
        "paused",
        "resumed",
        "cancelled",
    ]
    assert [change.actor for change in found] == ["ann", *["bob"] * 5, "ann"]
    registered, rescheduled, payload, policies, paused, resumed, cancelled = found
    assert registered.reason == "asked for by sales"
    assert rescheduled.reason == "too slow"
    values = {field.field: (field.before, field.after) for field in registered.fields}
    assert values["payload.card.id"] == (None, 4)
    assert values["key"] == (None, "bill-42")
    changed = {field.field: (field.before, field.after) for field in rescheduled.fields}
    assert changed["schedule.seconds"] == (60.0, 30.0)
    assert changed["next_run"][0] == job.next_run.isoformat() if job.next_run else False
    assert [str(field) for field in payload.fields] == ["payload.amount: 10 → 12"]
    assert [(f.field, f.before, f.after) for f in policies.fields] == [("timeout", None, 9.0)]
    assert payload.correlation == policies.correlation != rescheduled.correlation
    assert [(f.before, f.after) for f in paused.fields] == [("active", "paused")]
    assert ("status", "paused", "active") in {(f.field, f.before, f.after) for f in resumed.fields}
    assert cancelled.at >= resumed.at
    assert cancelled.to_dict()["fields"][0]["after"] == "cancelled"

    assert scheduler.changes(job.id, after=2, limit=2) == [payload, policies]
    with pytest.raises(UnknownJob):
        scheduler.changes("nobody")


def test_a_change_of_the_schedule_says_where_the_claims_had_brought_it(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(0.1))
    stage.claim_due(job.id)
    stage.claim_due(job.id)
    before = scheduler.job(job.id).next_run
    assert before is not None
    scheduler.reschedule(job.id, Every(3600))
    (change,) = (c for c in scheduler.changes(job.id) if c.what == "rescheduled")
    (moved,) = (field for field in change.fields if field.field == "next_run")
    assert moved.before == before.isoformat()


def test_an_explanation_leads_from_the_registration_to_the_outcome(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(0.1), key="k", reason="asked for")
    scheduler.update(job.id, timeout=5.0, reason="it hung")
    running = stage.attempt(stage.claim_due(job.id))
    waiting = stage.fail(running, retry_in_s=0.01)
    ended = stage.succeed(stage.attempt(stage.claim(waiting.id)), {"sum": 3})

    story = scheduler.explain(ended.id)
    assert (story.job_id, story.name, story.state, story.outlook) == (
        job.id,
        "report",
        "succeeded",
        "",
    )
    text = str(story)
    told = [
        "ann registered the job report under the key 'k': every 0.1 s, because 'asked for'",
        "ann changed the job, the last time before this run: policies changed (version 2)",
        ", because 'it hung'",
        "its fire time came",
        f"stage was elected leader of partition {job.partition}: fencing token 1",
        "leader leader claimed attempt 1",
        "under fencing token 1",
        "worker worker-1 took it from the ready queue and began attempt 1",
        "attempt 1 failed after 0.000 s (unknown): no such card; the next try is due at",
        "leader leader claimed attempt 2",
        "began attempt 2",
        'attempt 2 succeeded after 0.500 s and returned {"sum": 3}',
    ]
    places = [text.find(words) for words in told]
    assert -1 not in places, text
    # The election and the fire time come in the order of their instants, the rest as told.
    assert [story.steps[n].at <= story.steps[n + 1].at for n in range(len(story.steps) - 1)]
    assert places[4:] == sorted(places[4:])
    assert all(step.after_s is not None and step.after_s >= 0 for step in story.steps[1:])
    document = story.to_dict()
    assert document["steps"][-1]["event"] == f"{ended.id}:6"


def test_an_explanation_of_what_has_not_ended_says_what_it_waits_for(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    run = scheduler.trigger(job.id, request_id="r-1", reason="a customer waits")
    story = scheduler.explain(run.id)
    assert "ann ordered one extra run for" in str(story)
    assert "(request 'r-1'), because 'a customer waits'" in str(story)
    assert story.outlook.startswith("nobody has claimed it yet")
    assert story.seconds is None

    claimed = stage.claim(run.id)
    assert "no worker has begun it yet" in scheduler.explain(run.id).outlook
    running = stage.attempt(claimed)
    assert "given up at" in scheduler.explain(run.id).outlook
    waiting = stage.fail(running, retry_in_s=60)
    assert "waits for its next try" in scheduler.explain(run.id).outlook
    assert waiting.failures == 1

    dead = stage.dead(job.id)
    story = scheduler.explain(dead.id)
    assert "it was dead-lettered: another try would fail the same way" in str(story)
    assert "replay or discard it" in story.outlook
    scheduler.discard(dead.id, reason="paid by hand")
    assert "ann closed the dead letter: no further try is needed, because 'paid by hand'" in str(
        scheduler.explain(dead.id)
    )
    with pytest.raises(UnknownOccurrence):
        scheduler.explain(partition_stream("x", 1))


def test_a_backfilled_and_a_skipped_run_are_explained(scheduler: Scheduler) -> None:
    job = scheduler.register("report", schedule=Every(60))
    now = job.next_run
    assert now is not None
    start = now - timedelta(minutes=5)
    assert scheduler.backfill(job.id, start, now - timedelta(minutes=1), reason="an outage") > 0
    run = scheduler.occurrences(job_id=job.id)[0]
    assert "ann ordered runs for" in str(scheduler.explain(run.id))
    assert "because 'an outage'" in str(scheduler.explain(run.id))


def test_the_simulation_explains_and_tells_changes_too() -> None:
    with SimulatedScheduler() as scheduler:
        job = scheduler.register("report", schedule=Every(60))
        scheduler.advance(minutes=3)
        scheduler.reschedule(job.id, Every(30))
        first = scheduler.occurrences(job_id=job.id)[0]
        assert "succeeded" in str(scheduler.explain(first.id))
        assert [change.what for change in scheduler.changes(job.id)] == [
            "registered",
            "rescheduled",
        ]
