"""The log folded up to an instant equals what the index and the jobs were at that instant.

A life is made up at random, on the real log, by commands, a leader with the real deciders, and a
worker; after each step what the read models hold is written down. Later the log is asked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from horolog import (
    Cron,
    Every,
    InvalidSchedule,
    Job,
    NotAllowed,
    Once,
    Scheduler,
    UnknownJob,
    VersionConflict,
)
from horolog.application.log import Fences
from horolog.application.rebuild.skipping import append_to_log_stream
from horolog.application.scanner.deciding import Proposal, Terms, decide_job, decide_occurrence
from horolog.application.states import DueJob
from horolog.domain.log_events import OccurrencesPruned, ScheduleMoved
from horolog.domain.occurrence import decide_loss
from horolog.domain.occurrence_events import Claimed, Snoozed
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from tests.interface.conftest import Stage

    from horolog.domain.occurrence import OccurrenceState

_INDEX = """
    SELECT id, job_id, kind, state, version, fire_time, due_at, attempt, failures, partition
    FROM :schema.next_runs
"""
_STAMP = """
    SELECT greatest((SELECT max(recorded_at) FROM :schema.job_events),
                    (SELECT max(recorded_at) FROM :schema.occurrence_events))
"""
_DUE = """
    SELECT id FROM :schema.next_runs WHERE NOT look AND due_at <= clock_timestamp()
    ORDER BY due_at LIMIT 20
"""


@dataclass
class Snapshot:
    moment: datetime
    index: set[tuple[Any, ...]]
    jobs: list[Job]
    done: str


@dataclass
class Life:
    """Jobs and their runs, moved on by chance."""

    stage: Stage
    chance: Random
    jobs: list[UUID] = field(default_factory=list[UUID])
    claimed: list[OccurrenceState] = field(default_factory=list["OccurrenceState"])
    running: list[OccurrenceState] = field(default_factory=list["OccurrenceState"])
    dead: list[UUID] = field(default_factory=list[UUID])
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])

    def live(self, steps: int) -> None:
        for _ in range(steps):
            step = self.chance.choice(
                [self.register, self.change, self.order, self.revive]
                + [self.lead] * 3
                + [self.begin, self.end] * 2
            )
            try:
                step()
            except (NotAllowed, InvalidSchedule, VersionConflict):
                continue
            self.look(step.__name__)

    def look(self, done: str) -> None:
        query, sql = self.stage.database.query, self.stage.database.sql
        (moment,) = query(sql(_STAMP))[0]
        if moment is not None:
            index = set(query(sql(_INDEX)))
            jobs = self.stage.scheduler.jobs(limit=1000)
            self.snapshots.append(Snapshot(moment, index, jobs, done))

    @property
    def scheduler(self) -> Scheduler:
        return self.stage.scheduler

    def register(self) -> None:
        now = datetime.now(UTC)
        schedule = self.chance.choice(
            [
                Every(0.1),
                Every(0.2, jitter=0.1),
                Every(0.1, limit=3),
                Once(now + timedelta(seconds=0.1)),
                Once(now + timedelta(hours=1)),
                Cron("0 2 * * *", "America/New_York", jitter=600.0),
            ]
        )
        job = self.scheduler.register(
            self.chance.choice(["a", "b"]),
            schedule=schedule,
            overlap=self.chance.choice(["allow", "skip", "buffer_one"]),
            labels={"region": self.chance.choice(["us", "eu"])},
        )
        self.jobs.append(job.id)

    def change(self) -> None:
        if self.jobs:
            job = self.chance.choice(self.jobs)
            match self.chance.randrange(6):
                case 0:
                    self.scheduler.pause(job)
                case 1 | 2:
                    self.scheduler.resume(job, catch_up=self.chance.random() < 0.5)
                case 3:
                    self.scheduler.reschedule(job, Every(self.chance.choice([0.1, 0.3, 60])))
                case 4:
                    self.scheduler.update(job, payload={"n": self.chance.random()}, priority=1)
                case _:
                    if self.chance.random() < 0.6:
                        self.scheduler.cancel(job)

    def order(self) -> None:
        if self.jobs:
            job, now = self.chance.choice(self.jobs), datetime.now(UTC)
            match self.chance.randrange(4):
                case 0:
                    self.scheduler.trigger(job)
                case 1:
                    self.scheduler.trigger(job, at=now + timedelta(hours=2))
                case 2:
                    self.scheduler.trigger(job, at=now - timedelta(hours=2))
                case _:
                    self.scheduler.backfill(job, now - timedelta(minutes=31), now)

    def lead(self) -> None:
        query, sql = self.stage.database.query, self.stage.database.sql
        for row in self.stage.states.due([identity for (identity,) in query(sql(_DUE))]):
            partition = row.job.partition
            self.stage.lead(partition)
            terms = Terms(self.stage.now(), self.stage.tokens, 30.0, Origin("leader"))
            decided = (
                decide_job(row, terms) if isinstance(row, DueJob) else decide_occurrence(row, terms)
            )
            if isinstance(decided, Proposal):
                # What a backfill ordered meanwhile may stand in the way: the log refuses it.
                fences = Fences("stage", self.stage.tokens)
                if self.stage.log.append([decided.decision], fences).verdicts == ["accepted"]:
                    self.claimed += decided.claimed

    def begin(self) -> None:
        if self.claimed:
            claimed = self.claimed.pop(self.chance.randrange(len(self.claimed)))
            now = self.stage.states.occurrence(claimed.id)
            if now is not None and now.state == "claimed":
                self.running.append(self.stage.attempt(now))

    def end(self) -> None:
        if not self.running:
            return
        identity = self.running.pop(self.chance.randrange(len(self.running))).id
        running = self.stage.states.occurrence(identity)
        if running is None or running.state not in ("running", "stopping"):
            return
        match self.chance.randrange(6):
            case 0:
                self.stage.fail(running, retry_in_s=0.1)
            case 1:
                self.dead.append(self.stage.fail(running).id)
            case 2:
                until = self.stage.now() + timedelta(seconds=0.1)
                self.stage.go_on(running, Snoozed(attempt=running.attempt, until=until))
            case 3:
                lost = decide_loss(
                    running,
                    retry=Retry(base=0.1),
                    on_unknown="retry",
                    now=self.stage.now(),
                    owner=None,
                    origin=Origin("leader"),
                )
                self.stage.go_on(running, *lost)
            case _:
                self.stage.succeed(running)

    def revive(self) -> None:
        if self.dead:
            identity = self.dead.pop()
            if self.chance.random() < 0.7:
                self.scheduler.replay(identity)
            else:
                self.scheduler.discard(identity)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_is_what_the_log_says(scheduler: Scheduler, stage: Stage, seed: int) -> None:
    life = Life(stage, Random(seed))
    for _ in range(4):
        life.register()
    life.live(110)
    assert len(life.snapshots) > 60

    for number, seen in enumerate(life.snapshots):
        where = f"seed {seed}, snapshot {number} after {seen.done}"
        jobs = scheduler.jobs(as_of=seen.moment, limit=1000)
        assert jobs == seen.jobs, where
        entries = scheduler.due_at(seen.moment, limit=10_000)
        found = {
            (e.id, e.job_id, e.kind, e.state, e.version, e.fire_time, e.due_at, e.attempt,
             e.failures, e.partition)
            for e in entries
        }  # fmt: skip
        assert found == seen.index, (where, found ^ seen.index)
        assert [(e.due_at, e.id) for e in entries] == sorted((e.due_at, e.id) for e in entries)


def test_pages_and_choices_of_the_past(scheduler: Scheduler) -> None:
    jobs = [
        scheduler.register(f"job-{n % 2}", schedule=Every(60 + n), labels={"n": str(n % 3)})
        for n in range(9)
    ]
    scheduler.pause(jobs[0].id)
    paused_at = scheduler.history(jobs[0].id)[-1].recorded_at
    scheduler.resume(jobs[0].id)
    scheduler.update(jobs[1].id, labels={"n": "9"})
    later = scheduler.register("job-0", schedule=Every(60))

    ids = sorted(job.id for job in jobs)
    assert [job.id for job in scheduler.jobs(as_of=paused_at)] == ids
    first = scheduler.jobs(as_of=paused_at, limit=4)
    assert [job.id for job in first] == ids[:4]
    rest = scheduler.jobs(as_of=paused_at, after=first[-1].id)
    assert [job.id for job in rest] == ids[4:]
    assert [job.id for job in scheduler.jobs(as_of=paused_at, status="paused")] == [jobs[0].id]
    assert len(scheduler.jobs(as_of=paused_at, name="job-1")) == 4
    assert jobs[1].id in {job.id for job in scheduler.jobs(as_of=paused_at, label="n=1")}
    assert jobs[1].id not in {job.id for job in scheduler.jobs(label="n=1")}

    due = scheduler.due_at(paused_at)
    assert {entry.id for entry in due} == set(ids) - {jobs[0].id}
    assert scheduler.due_at(paused_at, limit=3) == due[:3]
    assert scheduler.due_at(paused_at, after=due[2].id) == due[3:]
    assert due[0].to_dict()["name"].startswith("job-")

    assert scheduler.job(jobs[0].id, as_of=paused_at).status == "paused"
    with pytest.raises(UnknownJob, match="was not registered by"):
        scheduler.job(later.id, as_of=paused_at)
    with pytest.raises(InvalidSchedule, match="no zone"):
        scheduler.due_at(datetime(2027, 1, 1))  # noqa: DTZ001 - what is refused
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    assert scheduler.jobs(as_of=long_ago) == []
    assert scheduler.due_at(long_ago) == []
    assert scheduler.due_at(datetime(2999, 1, 1, tzinfo=UTC)) != []


def test_a_page_is_full_although_jobs_were_registered_since(scheduler: Scheduler) -> None:
    # The ids of jobs with keys are in no order of time.
    early = [scheduler.register("report", schedule=Every(60), key=f"e{n}").id for n in range(8)]
    then = scheduler.history(early[-1])[0].recorded_at
    for number in range(40):
        scheduler.register("report", schedule=Every(60), key=f"l{number}")
    seen: list[UUID] = []
    while page := scheduler.jobs(as_of=then, after=seen[-1] if seen else None, limit=3):
        assert len(page) == min(3, 8 - len(seen))
        seen += [job.id for job in page]
    assert seen == sorted(early)


def test_the_simulated_past_is_what_was(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[SimulatedLog] = []
    make = SimulatedLog.__init__

    def remember(self: SimulatedLog, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        logs.append(self)

    monkeypatch.setattr(SimulatedLog, "__init__", remember)
    with SimulatedScheduler(takes={"slow": 1800.0}) as scheduler:
        (log,) = logs
        day = Cron("0 2 * * *", "America/New_York", jitter=600.0)
        scheduler.register("slow", schedule=Every(3600), key="slow", overlap="skip")
        scheduler.register("bill", schedule=day, key="bill")
        seen: list[tuple[datetime, list[Job], set[tuple[Any, ...]]]] = []
        for step in range(12):
            scheduler.advance(hours=7, minutes=10 * step)
            if step == 4:
                scheduler.pause(scheduler.job("bill").id)
            if step == 6:
                scheduler.resume(scheduler.job("bill").id)
                scheduler.trigger(scheduler.job("slow").id, at=scheduler.now + timedelta(days=1))
            rows = {
                (row.run.id, row.run.state, row.run.version, row.run.fire_time, row.due_at)
                for row in log.tables.next_runs.values()
            }
            seen.append((scheduler.now, scheduler.jobs(), rows))
            scheduler.advance(seconds=1)
        for moment, jobs, rows in seen:
            assert scheduler.jobs(as_of=moment) == jobs
            entries = scheduler.due_at(moment)
            assert {(e.id, e.state, e.version, e.fire_time, e.due_at) for e in entries} == rows


def test_the_position_at_an_instant_is_found_in_any_log(scheduler: Scheduler, stage: Stage) -> None:
    from horolog.infrastructure.postgres.past import PostgresPast

    past = PostgresPast(stage.database)
    assert past.position_at(stage.now()) == 0
    for _ in range(20):
        scheduler.register("report", schedule=Every(60))
        time.sleep(0.001)
    stage.dead(scheduler.jobs()[0].id)
    events = scheduler.log()
    for event in events:
        assert past.position_at(event.recorded_at) == max(
            other.position for other in events if other.recorded_at <= event.recorded_at
        )
        before = event.recorded_at - timedelta(microseconds=1)
        assert past.position_at(before) == max(
            (other.position for other in events if other.recorded_at <= before), default=0
        )


def test_a_schedule_stands_where_pruned_claims_had_brought_it(
    scheduler: Scheduler, stage: Stage
) -> None:
    job = scheduler.register("report", schedule=Every(0.1))
    for _ in range(3):
        stage.succeed(stage.attempt(stage.claim_due(job.id)))
    now = stage.now()
    stands = scheduler.job(job.id)
    assert scheduler.job(job.id, as_of=now) == stands

    # Retention takes the runs away and leaves word of what they had come to.
    claim = scheduler.history(scheduler.occurrences(job_id=job.id)[-1].id)[0]
    stage.database.query(stage.database.sql("DELETE FROM :schema.executions"))
    assert scheduler.job(job.id, as_of=now) != stands
    assert isinstance(claim.event, Claimed)
    move = ScheduleMoved(
        position=claim.position,
        append_position=claim.position,
        recorded_at=claim.recorded_at,
        job_id=job.id,
        fires=3,
        next_fire=claim.event.next_fire,
    )
    pruned = OccurrencesPruned(since=now, until=now, moves=[move])
    append_to_log_stream(stage.log, stage.database.namespace, [pruned])
    assert scheduler.job(job.id, as_of=now) == stands
