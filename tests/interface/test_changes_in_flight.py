"""A job that was changed does not run as it was: not by a claim on its way, not by a message in the
queue, not by an attempt that is about to begin; and no change fires anything by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from horolog import Cron, Every, Run, Scheduler, Worker
from horolog.application.decision import Decision
from horolog.application.log import Fences
from horolog.application.ready import ready_run
from horolog.application.scanner.deciding import Proposal, Terms, decide_job
from horolog.application.states import DueJob, DueOccurrence
from horolog.application.verify import verify
from horolog.application.worker.attempting import attempt_of
from horolog.domain.origin import Origin
from horolog.domain.schedule.zone_data import other_release, zone_bytes
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from tests.interface.conftest import Stage

Change = Callable[[Scheduler, UUID], object]

CHANGES: dict[str, Change] = {
    "another schedule": lambda s, job: s.reschedule(job, Every(7200)),
    "another payload": lambda s, job: s.update(job, payload={"n": 2}),
    "another policy": lambda s, job: s.update(job, overlap="skip"),
    "a pause": lambda s, job: s.pause(job),
    "a pause and its end": lambda s, job: (s.pause(job), s.resume(job)),
    "its end": lambda s, job: s.cancel(job),
    "other zone data": lambda s, _: s.zone_corrections(apply=True),
}


def claim_on_its_way(stage: Stage, job_id: UUID) -> Decision:
    """What a leader has decided, on what it read a moment ago, and is about to append."""
    (row,) = stage.states.due([job_id])
    assert isinstance(row, DueJob)
    stage.lead(row.job.partition)
    terms = Terms(row.due_at, stage.tokens, 30.0, Origin("leader"))
    proposal = decide_job(row, terms)
    assert isinstance(proposal, Proposal)
    return proposal.decision


@pytest.mark.parametrize("change", CHANGES)
def test_a_claim_that_was_decided_before_a_change_is_refused(
    scheduler: Scheduler, stage: Stage, change: str
) -> None:
    job = scheduler.register("report", schedule=Cron("0 9 * * *", "Europe/Berlin"))
    decision = claim_on_its_way(stage, job.id)
    with other_release("2099z", {"Europe/Berlin": zone_bytes("Etc/GMT-4")}):
        CHANGES[change](scheduler, job.id)
        answer = stage.log.append([decision], Fences("stage", stage.tokens))
        assert answer.verdicts == ["conflict"]
        assert scheduler.occurrences(job_id=job.id) == []
        assert [str(v) for v in verify(PostgresLogScan(stage.database)).violations] == []


@pytest.mark.parametrize("change", ["another schedule", "another payload", "its end"])
def test_a_change_that_was_decided_before_a_claim_is_decided_anew(
    scheduler: Scheduler, stage: Stage, change: str
) -> None:
    """The claim comes between the reading of the job and the append of its change."""
    job = scheduler.register("report", schedule=Every(3600))
    states = scheduler._context.states  # pyright: ignore[reportPrivateUsage]
    read, claims = states.job, [job.id]

    def read_then_claim(job_id: UUID) -> Any:
        found = read(job_id)
        while claims:
            stage.claim_fire(claims.pop())
        return found

    states.job = read_then_claim
    try:
        CHANGES[change](scheduler, job.id)
    finally:
        states.job = read
    assert verify(PostgresLogScan(stage.database)).ok
    (run,) = scheduler.occurrences(job_id=job.id)
    assert run.state == {"its end": "skipped", "another payload": "scheduled"}.get(
        change, "claimed"
    )


def test_a_message_in_the_queue_of_a_changed_job_is_void_and_made_anew(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(3600), payload={"n": 1})
    claimed = stage.claim_fire(job.id)
    state = stage.states.job(job.id)
    assert state is not None
    message = ready_run(state, claimed)
    scheduler.update(job.id, payload={"n": 2})
    attempt, _ = attempt_of(message, "worker", 30.0)
    assert stage.log.append([attempt]).verdicts == ["conflict"]
    (row,) = stage.states.due([claimed.id])
    assert isinstance(row, DueOccurrence)
    again = ready_run(row.job, stage.claim(claimed.id))
    assert again.payload == {"n": 2}
    assert again.message_id != message.message_id
    stage.succeed(stage.attempt(stage.states.occurrence(claimed.id) or claimed))
    assert verify(PostgresLogScan(stage.database)).ok


def test_a_message_in_the_queue_of_a_cancelled_job_begins_nothing(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(3600))
    claimed = stage.claim_fire(job.id)
    state = stage.states.job(job.id)
    assert state is not None
    message = ready_run(state, claimed)
    scheduler.cancel(job.id)
    attempt, _ = attempt_of(message, "worker", 30.0)
    assert stage.log.append([attempt]).verdicts == ["conflict"]
    found = scheduler.occurrence(claimed.id)
    assert (found.state, found.reason) == ("skipped", "cancelled")
    assert verify(PostgresLogScan(stage.database)).ok


def test_a_resumed_job_catches_up_on_its_pause_where_that_is_asked(
    scheduler: Scheduler, stage: Stage
) -> None:
    anchor = stage.now() - timedelta(seconds=10.05)
    job = scheduler.register("report", schedule=Every(0.1, anchor=anchor), catch_up="all")
    first = job.next_run
    scheduler.pause(job.id)
    resumed = scheduler.resume(job.id, catch_up=True)
    assert (resumed.status, resumed.next_run) == ("active", first)
    topics = [event.topic for event in scheduler.history(job.id)]
    assert topics == ["job.registered.1", "job.paused.1", "job.resumed.1"]
    assert verify(PostgresLogScan(stage.database)).ok


# The same in simulated time: what runs, and with what, around the instant of a change.

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("offset_s", [-1800.0, -1.0, -0.001, 0.0, 0.001, 1.0, 1800.0])
def test_the_old_rule_holds_up_to_the_change_and_the_new_one_after_it(offset_s: float) -> None:
    ran: list[tuple[datetime, int]] = []
    worker = Worker()

    @worker.handles("report")
    def report(run: Run, version: int) -> None:
        ran.append((run.fire_time, version))

    with SimulatedScheduler(worker, start=NOON - timedelta(hours=3)) as scheduler:
        job = scheduler.register(
            "report", schedule=Cron("0 * * * *", "UTC"), payload={"version": 1}
        )
        edit = NOON + timedelta(seconds=offset_s)
        scheduler.advance(to=edit)
        before = len(ran)
        scheduler.reschedule(job.id, Cron("30 * * * *", "UTC"))
        scheduler.update(job.id, payload={"version": 2})
        assert scheduler.run_due() == 0, "a change fires nothing"
        assert len(ran) == before
        scheduler.advance(to=NOON + timedelta(hours=3))
        old = [NOON + timedelta(hours=n) for n in range(-2, 4)]
        new = [NOON + timedelta(hours=n, minutes=30) for n in range(-2, 3)]
        assert ran == [(f, 1) for f in old if f <= edit] + [(f, 2) for f in new if f > edit]
        assert scheduler.verify().ok


def test_what_was_due_at_a_change_and_not_claimed_does_not_run_and_is_told() -> None:
    with SimulatedScheduler(start=NOON) as scheduler:
        job = scheduler.register("report", schedule=Every(60))
        scheduler.outage(minutes=5)
        scheduler.reschedule(job.id, Every(3600))
        scheduler.advance(minutes=30)
        assert scheduler.occurrences() == []
        dropped = scheduler.history(job.id)[1]
        assert dropped.topic == "job.fires_skipped.1"
        assert (dropped.data["count"], dropped.data["cause"]) == (5, "superseded")
        assert scheduler.verify().ok


@pytest.mark.parametrize(("catch_up", "ran"), [(False, [6]), (True, [1, 2, 3, 4, 5, 6])])
def test_the_fire_times_of_a_pause_run_only_where_that_is_asked(
    catch_up: bool, ran: list[int]
) -> None:
    with SimulatedScheduler(start=NOON) as scheduler:
        job = scheduler.register("report", schedule=Every(60), catch_up="all")
        scheduler.pause(job.id)
        scheduler.advance(minutes=5)
        scheduler.resume(job.id, catch_up=catch_up)
        scheduler.advance(minutes=1)
        fires = [o.fire_time for o in scheduler.occurrences(job_id=job.id)]
        assert [(fire - NOON) // timedelta(minutes=1) for fire in fires] == ran
        skipped = [e for e in scheduler.history(job.id) if e.topic == "job.fires_skipped.1"]
        assert [e.data["cause"] for e in skipped] == ([] if catch_up else ["paused"])
        assert scheduler.verify().ok
