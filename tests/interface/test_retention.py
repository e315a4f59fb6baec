"""Retention: old months leave the log, and nothing that rests on them goes wrong by that."""

from __future__ import annotations

import asyncio
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.interface.test_hash_chain import check as check_chain
from tests.interface.test_hash_chain import tamper

from horolog import (
    Every,
    InvalidPolicy,
    InvalidSetting,
    NotAllowed,
    StoreUnavailable,
    UnknownOccurrence,
)
from horolog.application.decision import decide_on_job
from horolog.application.retention import pruning
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import partition_of
from horolog.domain.job import decide_registration
from horolog.domain.origin import Origin
from horolog.infrastructure.archive.jsonl import archived
from horolog.infrastructure.postgres.rebuild.rebuilds import exclusively
from horolog.infrastructure.postgres.retention import months as postgres_months
from horolog.infrastructure.postgres.retention.ahead import create_months_ahead, months_kept_ahead
from horolog.infrastructure.postgres.threaded import DedicatedThread
from horolog.interface.projections import Projections
from horolog.interface.retention import retain
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interface.conftest import Stage

    from horolog import Scheduler
    from horolog.application.retention import RetentionOutcome
    from horolog.infrastructure.postgres.database import Database

OLD = datetime.now(UTC).replace(day=3, hour=0, minute=0, second=0, microsecond=0) - timedelta(
    days=200
)
MONTH = f"{OLD:%Y-%m}"
PARTITIONS = 64


@dataclass
class Past:
    """A stage on which jobs fired long ago."""

    stage: Stage
    scheduler: Scheduler

    @property
    def database(self) -> Database:
        return self.stage.database

    @property
    def settings(self) -> Settings:
        return Settings.read(
            self.database.url, namespace=self.database.namespace, actor="olga", environment={}
        )

    def job(self, every_s: float = 3600.0, success_s: float | None = None) -> UUID:
        """A job whose first fire time is ``OLD``."""
        job_id = uuid4()
        begin = OLD - timedelta(seconds=every_s)
        schedule = Every(every_s, anchor=begin).anchored(begin, str(job_id)).to_json()
        events = decide_registration(
            JobDefinition(name="report", schedule=schedule, expect_success_by=success_s),
            partition=partition_of(str(job_id), PARTITIONS),
            key=None,
            now=begin,
            origin=Origin("ann"),
        )
        self.stage.append(decide_on_job(None, job_id, events)[0])
        return job_id

    def done(self, job_id: UUID) -> UUID:
        stage = self.stage
        return stage.succeed(stage.attempt(stage.claim_fire(job_id))).id

    def prune(self, days: float = 60, **options: Any) -> RetentionOutcome:
        return retain(self.settings, older_than_days=days, **options)

    def events(self) -> dict[int, UUID]:
        rows = self.scheduler.log(limit=10_000)
        return {event.position: event.stream for event in rows}

    def index(self) -> list[Any]:
        text = "SELECT to_jsonb(r) FROM :schema.next_runs r ORDER BY id"
        return self.database.query(self.database.sql(text))

    def executions(self) -> set[UUID]:
        text = "SELECT id FROM :schema.executions"
        return {row[0] for row in self.database.query(self.database.sql(text))}

    def all_is_well(self) -> None:
        """The log, its chain, and every read model: as they are and as a rebuild makes them."""
        assert [str(violation) for violation in verify_log(self.settings).violations] == []
        assert check_chain(self.database).breaks == []
        before = self.index()
        with Projections(settings=self.settings, window=7) as projections:
            assert projections.verify().differences == []
            assert projections.rebuild().differences == []
        assert self.index() == before, "a rebuild fires nothing again"


@pytest.fixture
def past(stage: Stage, scheduler: Scheduler) -> Past:
    with stage.database.session() as connection:
        connection.execute(stage.database.sql("SELECT :schema.create_month_partitions(9, 3)"))
    return Past(stage, scheduler)


def test_a_dry_run_says_what_would_go_and_changes_nothing(past: Past) -> None:
    job = past.job()
    for _ in range(3):
        past.done(job)
    running = past.stage.attempt(past.stage.claim_fire(job))
    before = past.events()
    outcome = past.prune(dry_run=True)
    (month,) = [month for month in outcome.months if month.occurrences]
    assert (month.month, month.occurrences, month.kept) == (MONTH, 3, 1)
    assert (month.events, month.executions, month.pruned) == (9, 3, False)
    assert past.events() == before
    assert past.scheduler.occurrence(running.id).state == "running"
    past.all_is_well()


def test_finished_occurrences_leave_and_everything_else_stays(past: Past, tmp_path: Path) -> None:
    stage, scheduler = past.stage, past.scheduler
    job = past.job()
    done = [past.done(job) for _ in range(4)]
    failed = stage.fail(stage.attempt(stage.claim_fire(job)), retry_in_s=0)
    done.append(stage.succeed(stage.attempt(stage.claim(failed.id))).id)
    dead = stage.dead(job)
    discarded = stage.dead(job)
    scheduler.discard(discarded.id)
    retrying = stage.fail(stage.attempt(stage.claim_fire(job)), retry_in_s=3600)
    running = stage.attempt(stage.claim_fire(job))
    claimed = stage.claim_fire(job)
    ordered = scheduler.trigger(job, at=OLD + timedelta(hours=1))
    waiting = scheduler.trigger(job, at=OLD + timedelta(hours=2))
    done.append(stage.succeed(stage.attempt(stage.claim(ordered.id))).id)
    only_once = past.job(every_s=400 * 86_400.0)
    done.append(past.done(only_once))
    fresh = scheduler.register("fresh", schedule=Every(60))
    past.done(fresh.id)
    past.all_is_well()

    before, executions = past.events(), past.executions()
    outcome = past.prune(archive=tmp_path)
    gone = {*done, discarded.id}
    (month,) = [month for month in outcome.months if month.occurrences]
    assert (month.month, month.pruned, month.hindrance) == (MONTH, True, None)
    assert (month.occurrences, month.kept) == (len(gone), 5)

    kept = {position: stream for position, stream in before.items() if stream not in gone}
    after = past.events()
    assert {p: s for p, s in after.items() if p in before} == kept
    assert past.executions() == executions - gone
    for unresolved in (dead, retrying, running, claimed, waiting):
        scheduler.occurrence(unresolved.id)
    (said,) = scheduler.log(topics=["log.occurrences_pruned.1"])[-1:]
    assert said.actor == "olga"
    assert said.reason == "older than 60 days"
    assert month.archive is not None
    file = tmp_path / month.archive
    assert [e.position for e in archived(file)] == sorted(before.keys() - kept.keys())
    assert said.data["archive"] == month.archive
    past.all_is_well()

    # And it goes on.
    scheduler.replay(dead.id)
    stage.succeed(stage.attempt(stage.claim(dead.id)))
    stage.succeed(running)
    stage.succeed(stage.attempt(stage.claim(waiting.id)))
    past.done(job)
    past.all_is_well()


def test_what_was_archived_is_read_again_byte_for_byte(past: Past, tmp_path: Path) -> None:
    job = past.job()
    stored = {
        past.stage.succeed(past.stage.attempt(past.stage.claim_fire(job)), result=result).id
        for result in ('"}\n{', "ünï", {"state": 1})
    }
    text = "SELECT * FROM :schema.occurrence_events ORDER BY position"
    rows = past.database.query(past.database.sql(text))
    (month,) = [m for m in past.prune(archive=tmp_path).months if m.pruned and m.occurrences]
    assert month.archive is not None
    found = list(archived(tmp_path / month.archive))
    assert [tuple(event) for event in found] == rows
    assert {event.stream for event in found} == stored
    with gzip.open(tmp_path / month.archive, "rt") as lines:
        first = json.loads(next(lines))
    assert first["topic"] == "occurrence.claimed.1"
    assert first["state"]["job_id"] == str(job)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_an_archive_in_parquet(past: Past, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    job = past.job()
    past.done(job)
    outcome = past.prune(archive=tmp_path, archive_format="parquet")
    (file,) = [month.archive for month in outcome.months if month.occurrences]
    assert file is not None
    rows = parquet.read_table(tmp_path / file).to_pylist()
    assert [row["topic"].split(".")[1] for row in rows] == ["claimed", "attempted", "succeeded"]


def test_a_run_cancelled_before_its_claim_is_explained_from_the_archive_as_it_was(
    past: Past, tmp_path: Path
) -> None:
    """What it was is said by its order alone, which the log of its job still has."""
    job, scheduler = past.job(), past.scheduler
    past.done(job)
    triggered = scheduler.trigger(job, at=OLD + timedelta(minutes=7), reason="by hand").id
    scheduler.backfill(job, OLD, OLD + timedelta(minutes=9), reprocess="all")
    backfilled = next(one.id for one in scheduler.occurrences(job_id=job) if one.kind == "backfill")
    for one in (triggered, backfilled):
        scheduler.cancel_occurrence(one, reason="not needed")
    stories = {one: scheduler.explain(one) for one in (triggered, backfilled)}
    past.prune(archive=tmp_path)
    for one, story in stories.items():
        with pytest.raises(UnknownOccurrence):
            scheduler.explain(one)
        told = scheduler.explain(one, archive=tmp_path)
        assert told.archive is not None
        assert replace(told, archive=None) == story
        assert "'not needed'" in str(told)
    with pytest.raises(UnknownOccurrence, match=f"nor in the archive {tmp_path}"):
        scheduler.explain(uuid4(), archive=tmp_path)


@pytest.mark.parametrize("archive_format", ["jsonl", "parquet"])
def test_what_has_left_is_answered_from_the_archive_and_marked(
    archive_format: str, past: Past, tmp_path: Path
) -> None:
    if archive_format == "parquet":
        pytest.importorskip("pyarrow")
    job, scheduler, stage = past.job(), past.scheduler, past.stage
    done = past.done(job)
    failed = stage.fail(stage.attempt(stage.claim_fire(job)), retry_in_s=0)
    again = stage.succeed(stage.attempt(stage.claim(failed.id))).id
    other = past.done(past.job())
    kept = stage.dead(job).id
    ordered = scheduler.trigger(job, at=OLD + timedelta(minutes=7)).id
    stage.succeed(stage.attempt(stage.claim(ordered)))
    stories = {one: scheduler.explain(one) for one in (done, again, ordered)}
    histories = {one: scheduler.history(one) for one in (done, again, ordered, kept)}
    runs = scheduler.executions(limit=100)
    of_job = scheduler.executions(job_id=job, failure="transport", limit=100)
    (month,) = [m for m in past.prune(archive=tmp_path, archive_format=archive_format).months
                if m.occurrences]  # fmt: skip
    assert month.archive is not None

    def unmarked(found: Any) -> Any:
        return [replace(one, archive=None) for one in found]

    for one, story in stories.items():
        told = scheduler.explain(one, archive=tmp_path)
        assert told.archive == month.archive
        assert f"(from the archive {month.archive})" in str(told)
        assert replace(told, archive=None) == story
    for one, before in histories.items():
        found = scheduler.history(one, archive=tmp_path)
        assert unmarked(found) == before
        assert {event.archive for event in found} == {None if one == kept else month.archive}
        assert scheduler.history(one, after=1, limit=1, archive=tmp_path) == found[1:2]
    found = scheduler.executions(archive=tmp_path, limit=100)
    assert unmarked(found) == runs
    assert {one.id for one in found if one.archive} == {done, again, ordered, other}
    assert unmarked(scheduler.executions(archive=tmp_path, limit=2)) == runs[:2]
    assert unmarked(scheduler.executions(archive=tmp_path, after=runs[1].id)) == runs[2:]
    choice: dict[str, Any] = {"job_id": job, "failure": "transport", "archive": tmp_path}
    assert unmarked(scheduler.executions(**choice)) == of_job
    assert scheduler.executions(since=OLD + timedelta(days=90), archive=tmp_path) == []
    with pytest.raises(InvalidPolicy, match="without by_end"):
        scheduler.executions(by_end=True, archive=tmp_path)
    with pytest.raises(UnknownOccurrence):
        scheduler.explain(uuid4(), archive=tmp_path)
    with pytest.raises(InvalidSetting, match="holds no archive"):
        scheduler.history(done, archive=tmp_path / "elsewhere")


def test_an_archive_that_cannot_be_written_keeps_everything(past: Past, tmp_path: Path) -> None:
    past.done(past.job())
    before = past.events()
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidSetting, match="cannot be written to"):
        past.prune(archive=file / "folder")
    assert past.events() == before


def test_a_schedule_stands_where_it_stood_though_all_its_claims_are_gone(past: Past) -> None:
    """Also where it was changed in between: what was pruned comes before the change."""
    quiet = past.job(every_s=400 * 86_400.0)
    past.done(quiet)
    changed = past.job()
    for _ in range(5):
        past.done(changed)
    past.scheduler.reschedule(changed, Every(7200))
    paused = past.job()
    past.done(paused)
    past.scheduler.pause(paused)
    moved = past.job()
    for _ in range(3):
        past.done(moved)
    past.scheduler.update(moved, payload={"n": 1})
    fires = {job.id: job.next_run for job in past.scheduler.jobs(limit=100)}
    past.prune()
    past.all_is_well()
    past.scheduler.resume(paused)
    past.all_is_well()
    now = {job.id: job.next_run for job in past.scheduler.jobs(limit=100)}
    assert {job: now[job] for job in (quiet, changed, moved)} == {
        job: fires[job] for job in (quiet, changed, moved)
    }


def test_months_are_pruned_one_after_the_other_and_again_later(past: Past) -> None:
    jobs = [past.job(every_s=20 * 86_400.0) for _ in range(2)]
    for _ in range(5):
        for job in jobs:
            past.done(job)
    first = past.prune(days=150)
    before = datetime.now(UTC) - timedelta(days=150)
    fires = [OLD + n * timedelta(days=20) for n in range(5)]
    old = {f"{fire:%Y-%m}" for fire in fires if f"{fire:%Y-%m}" < f"{before:%Y-%m}"}
    assert [month.month for month in first.months if month.occurrences] == sorted(old) != []
    past.all_is_well()
    for job in jobs:
        past.done(job)
    second = past.prune(days=62)
    assert sum(month.occurrences for month in second.months) > 0
    past.all_is_well()
    assert past.prune(days=62).months == []


def test_a_success_that_has_left_goes_on_to_count(past: Past) -> None:
    """A later fire time may have succeeded before it: counted from there, a job would be said to be
    silent a second time."""
    job = past.job(every_s=80 * 86_400.0, success_s=3600.0)
    past.job()
    first, second = past.done(job), past.done(job)
    database = past.database
    database.query(
        database.sql(
            "UPDATE :schema.executions SET finished_at = fire_time + CASE id WHEN %s"
            " THEN interval '100 days' ELSE interval '1 day' END WHERE job_id = %s RETURNING 1"
        ),
        (first, job),
    )
    database.query(
        database.sql("UPDATE :schema.jobs SET registered_at = %s WHERE id = %s RETURNING 1"),
        (OLD, job),
    )
    missed = database.sql("SELECT due FROM :schema.deadlines_missed('1970-01-01Z', 10)")
    due = OLD + timedelta(days=100, hours=1)
    assert database.query(missed) == [(due,)]
    past.prune(days=150)
    assert past.executions() == {second}
    assert database.query(missed) == [(due,)]
    past.prune(days=60)
    assert past.executions() == set()
    assert database.query(missed) == [(due,)]


def test_a_long_account_takes_several_events(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "CHUNK", 2)
    for _ in range(5):
        past.done(past.job())
    past.prune()
    said = past.scheduler.log(topics=["log.occurrences_pruned.1"])
    assert len({event.correlation for event in said}) == len(
        [event for event in said if not event.data["more"]]
    )
    assert sum(len(event.data["moves"]) for event in said) == 5
    past.all_is_well()


def test_without_the_end_of_its_account_nothing_was_pruned(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the first event of the account and the last: the month is whole."""
    monkeypatch.setattr(pruning, "CHUNK", 2)
    for _ in range(3):
        past.done(past.job())
    ordered = past.scheduler.trigger(past.job(), at=OLD)
    past.stage.succeed(past.stage.attempt(past.stage.claim(ordered.id)))
    before = past.events()

    class Killed(Exception):
        pass

    def drop(*_: object) -> bool:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(postgres_months.PostgresMonths, "drop", drop)
        with pytest.raises(Killed):
            past.prune()
    assert before.items() <= past.events().items()
    past.all_is_well()
    assert sum(month.occurrences for month in past.prune().months) == 4
    past.all_is_well()


def test_a_kill_before_the_files_are_gone_leaves_nothing_behind(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    past.done(past.job())
    with monkeypatch.context() as patch:
        patch.setattr(postgres_months.PostgresMonths, "_drop_leftovers", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        past.prune(days=150)
    past.all_is_well()
    past.prune(days=62)
    leftovers = """SELECT count(*) FROM pg_class
        WHERE relnamespace = :literal::regnamespace AND relname LIKE 'pruned%%'"""
    assert past.database.query(past.database.sql(leftovers), ()) == [(0,)]


def test_what_happens_to_the_month_while_it_is_looked_at_stays(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = past.job()
    past.done(job)
    drop = postgres_months.PostgresMonths.drop
    late: list[UUID] = []

    def later(self: postgres_months.PostgresMonths, farewell: Any) -> bool:
        if farewell.month.name == MONTH and not late:
            late.append(past.done(job))
            late.append(past.scheduler.trigger(job, at=OLD + timedelta(minutes=5)).id)
        return drop(self, farewell)

    monkeypatch.setattr(postgres_months.PostgresMonths, "drop", later)
    past.prune()
    assert past.scheduler.occurrence(late[0]).state == "succeeded"
    assert past.scheduler.occurrence(late[1]).state == "scheduled"
    past.all_is_well()
    past.stage.succeed(past.stage.attempt(past.stage.claim(late[1])))
    past.all_is_well()


def test_a_backfill_of_a_pruned_range_runs(past: Past) -> None:
    job = past.job()
    for _ in range(3):
        past.done(job)
    past.prune()
    ordered = past.scheduler.trigger(job, at=OLD + timedelta(minutes=7))
    past.stage.succeed(past.stage.attempt(past.stage.claim(ordered.id)))
    past.all_is_well()


def test_a_backfill_runs_nothing_twice_of_which_the_log_knows_nothing_any_more(past: Past) -> None:
    job, scheduler = past.job(), past.scheduler
    done = {past.done(job) for _ in range(3)}
    past.prune()
    day = timedelta(days=1)
    for reprocess in ("none", "failed"):
        with pytest.raises(NotAllowed, match="left the log by retention"):
            scheduler.backfill(job, OLD - day, OLD + day, reprocess=reprocess)
        with pytest.raises(NotAllowed, match="left the log by retention"):
            scheduler.backfill(job, OLD - day, OLD + day, reprocess=reprocess, dry_run=True)
    ordered = scheduler.backfill(job, OLD, OLD + day, reprocess="all", request_id="again")
    assert ordered == 3
    assert scheduler.backfill(job, OLD, OLD + day, reprocess="all", request_id="again") == 0
    again = {row.id for row in scheduler.occurrences(job_id=job, limit=100)}
    assert again.isdisjoint(done), "nobody downstream takes them for what has run"
    past.all_is_well()

    # Nothing of a younger job can have left.
    younger = scheduler.register("younger", schedule=Every(3600, anchor=OLD))
    assert scheduler.backfill(younger.id, OLD, OLD + day) == 25
    past.all_is_well()


def test_what_was_kept_leaves_with_the_rest_when_it_is_resolved(past: Past, tmp_path: Path) -> None:
    job, stage = past.job(), past.stage
    past.done(job)
    dead, running = stage.dead(job), stage.attempt(stage.claim_fire(job))
    past.prune()
    past.scheduler.discard(dead.id)
    fresh = past.done(past.scheduler.register("fresh", schedule=Every(60)).id)
    assert [m.month for m in past.prune(dry_run=True).months if m.events] == ["rest"]
    outcome = past.prune(archive=tmp_path)
    (rest,) = [month for month in outcome.months if month.events]
    assert (rest.month, rest.pruned, rest.occurrences, rest.kept) == ("rest", True, 1, 1)
    assert rest.archive is not None
    assert {event.stream for event in archived(tmp_path / rest.archive)} == {dead.id}
    assert fresh in past.executions()
    assert dead.id not in past.executions()
    past.all_is_well()
    stage.succeed(running)
    past.all_is_well()
    assert [m.month for m in past.prune().months if m.events] == ["rest"]
    assert past.prune().months == []
    past.all_is_well()
    assert running.id not in past.executions()


def test_runs_of_a_backfill_behind_the_first_month_leave_with_the_rest(past: Past) -> None:
    begin = OLD - timedelta(days=900)
    job = past.scheduler.register("old", schedule=Every(3600, anchor=begin)).id
    assert past.scheduler.backfill(job, begin, begin + timedelta(hours=3)) == 4
    for row in past.scheduler.occurrences(job_id=job, limit=10)[:3]:
        past.stage.succeed(past.stage.attempt(past.stage.claim(row.id)))
    (rest,) = [month for month in past.prune(days=300).months if month.events]
    assert (rest.month, rest.occurrences, rest.kept) == ("rest", 3, 1)
    past.all_is_well()


def test_a_follower_that_has_not_seen_it_keeps_the_month(past: Past) -> None:
    past.done(past.job())
    past.database.query(past.database.sql("SELECT :schema.track('mirror', 1)"))
    outcome = past.prune()
    (month,) = [month for month in outcome.months if month.hindrance]
    assert not month.pruned
    assert month.hindrance is not None
    assert "follower mirror is at position 1" in month.hindrance


def test_too_much_that_is_unresolved_keeps_the_month(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_months, "MOST_KEPT", 1)
    job = past.job()
    past.done(job)
    past.stage.dead(job)
    assert any(month.pruned and month.occurrences for month in past.prune().months)
    other = past.job()
    past.stage.dead(other)
    past.stage.dead(other)
    past.all_is_well()


def test_an_append_never_waits_for_a_pruning_that_waits_for_a_reader(past: Past) -> None:
    past.done(past.job())
    with ThreadPoolExecutor(1) as thread, past.database.session() as reader:
        with reader.transaction():
            reader.execute(past.database.sql("SELECT count(*) FROM :schema.occurrence_events"))
            pruned = thread.submit(past.prune)
            for _ in range(20):
                past.scheduler.register("meanwhile", schedule=Every(60))
            assert not pruned.done()
        assert any(month.pruned for month in pruned.result().months)
    past.all_is_well()


def test_a_table_that_is_held_for_ever_keeps_the_month(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "DROP_TRIES", 2)
    past.done(past.job())
    before = past.events()
    with past.database.session() as reader, reader.transaction():
        reader.execute(past.database.sql("SELECT count(*) FROM :schema.occurrence_events"))
        with pytest.raises(StoreUnavailable, match="could not be pruned"):
            past.prune()
    assert before.items() <= past.events().items()
    past.all_is_well()


def test_nobody_prunes_while_somebody_rebuilds(past: Past) -> None:
    with exclusively(past.database), pytest.raises(NotAllowed, match="another process"):
        past.prune()


def test_there_is_no_way_back_behind_a_pruning(past: Past) -> None:
    past.done(past.job())
    with Projections(settings=past.settings) as projections:
        projections.rebuild()
        assert projections.status().can_roll_back
        past.prune()
        with pytest.raises(NotAllowed, match="nothing to roll back to"):
            projections.roll_back()


@pytest.mark.parametrize("days", [0, -1, 1e9, float("nan")])
def test_an_age_that_makes_no_sense_is_refused(past: Past, days: float) -> None:
    with pytest.raises(InvalidSetting, match="--older-than"):
        past.prune(days=days)


TAMPERING = {
    "an event that stayed": (
        "job_events",
        """UPDATE :schema.job_events SET recorded_at = recorded_at + interval '1 s'
           WHERE topic = 'job.registered.1'""",
    ),
    "another event less": (
        "occurrence_events_rest",
        "DELETE FROM :schema.occurrence_events_rest",
    ),
    "what is left of a link": (
        "chain_pruned",
        "UPDATE :schema.chain_pruned SET content = sha256(content)",
    ),
    "a link that is said to be empty": (
        "chain_pruned",
        """INSERT INTO :schema.chain_pruned
           SELECT (SELECT pruning FROM :schema.chain_pruned LIMIT 1), min(position_to), 0,
                  sha256('') FROM :schema.chain""",
    ),
}


@pytest.mark.parametrize("what", TAMPERING)
def test_pruning_is_no_excuse(what: str, past: Past) -> None:
    job = past.job()
    past.done(job)
    past.stage.dead(job)
    past.prune()
    assert check_chain(past.database).pruned == 3
    table, statement = TAMPERING[what]
    tamper(past.database, table, statement)
    assert not check_chain(past.database).ok


async def test_scanners_keep_the_months_ahead(database: Database) -> None:
    month = f"{datetime.now(UTC) + timedelta(days=62):%Y_%m}"
    with database.session() as connection:
        for table in ("occurrence_events", "executions"):
            connection.execute(database.sql(f"DROP TABLE :schema.{table}_{month}"))
        exists = database.sql("SELECT to_regclass(%s) IS NOT NULL")
        name = f"{database.namespace}.occurrence_events_{month}"
        thread = DedicatedThread("months")
        deadline = monotonic() + 20
        async with months_kept_ahead(database, thread):
            while connection.execute(exists, (name,)).fetchone() != (True,):
                assert monotonic() < deadline
                await asyncio.sleep(0.02)
        assert create_months_ahead(database, connection) == 0
        thread.close()
