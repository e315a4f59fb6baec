"""Read models from the log: what is wrong is found row by row, and put right while it is used."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from tests.interface.test_hash_chain import tamper
from tests.interface.test_verification import played

from horolog import Every, InvalidSetting, JobSpec, NotAllowed, Once, Retry, UnreadableEvent
from horolog.domain import event as events
from horolog.domain.errors import ProjectionStopped
from horolog.domain.event import upcast_from
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.rebuild.rebuilds import exclusively
from horolog.interface.projections import Projections
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.interface.conftest import Stage

    from horolog import Scheduler
    from horolog.application.rebuild import Outcome
    from horolog.infrastructure.postgres.database import Database


@dataclass
class Hand:
    """Writes to the tables past every check, as a bug does."""

    database: Database

    def do(self, statement: str, *params: object) -> list[Any]:
        return self.database.query(self.database.sql(statement), params or None)


@pytest.fixture
def hand(database: Database) -> Hand:
    return Hand(database)


@pytest.fixture
def projections(database: Database) -> Generator[Projections]:
    settings = Settings.read(database.url, namespace=database.namespace, actor="olga")
    with Projections(settings=settings, window=7) as opened:
        yield opened


def put_right(projections: Projections, outcome: Outcome) -> None:
    """A rebuild finds the same, and afterwards there is nothing to find."""
    rebuilt = projections.rebuild(reason="a test")
    assert rebuilt.exchanged
    assert rebuilt.difference_count == outcome.difference_count
    assert projections.verify().differences == []


def test_an_honest_log_has_no_difference(
    projections: Projections, scheduler: Scheduler, stage: Stage
) -> None:
    assert projections.verify().ok
    played(scheduler, stage)
    outcome = projections.verify()
    assert outcome.differences == []
    assert outcome.ok
    assert outcome.events == stage.events()
    assert outcome.position == scheduler.log(limit=10_000)[-1].position


@pytest.mark.parametrize("window", [3, 16, 1_000])
def test_a_fold_that_leaves_out_what_ended_within_a_window_comes_to_the_same(
    window: int, database: Database, scheduler: Scheduler, stage: Stage
) -> None:
    played(scheduler, stage)
    with Projections(database.url, namespace=database.namespace, window=window) as projections:
        outcome = projections.verify("next_runs", "jobs", "dead_letters")
    assert outcome.differences == []
    assert outcome.events == stage.events()


DAMAGES = {
    "a fire put off": (
        "next_runs",
        "UPDATE :schema.next_runs SET due_at = due_at + interval '1 day' WHERE kind = 'job'",
    ),
    "a row lost": ("next_runs", "DELETE FROM :schema.next_runs WHERE id = %(job)s"),
    "a row too many": (
        "next_runs",
        """INSERT INTO :schema.next_runs (due_at, fire_time, position, id, job_id, version,
               attempt, failures, fires, partition, look, state, kind)
           SELECT due_at, fire_time, position, gen_random_uuid(), job_id, version, attempt,
               failures, fires, partition, look, state, kind FROM :schema.next_runs LIMIT 1""",
    ),
    "a look too early": (
        "next_runs",
        "UPDATE :schema.next_runs SET due_at = due_at - interval '1 s' WHERE look",
    ),
    "another partition": ("next_runs", "UPDATE :schema.next_runs SET partition = 0"),
    "a version": ("jobs", "UPDATE :schema.jobs SET version = version + 1 WHERE id = %(job)s"),
    "a definition": (
        "jobs",
        'UPDATE :schema.jobs SET definition = \'{"name": "other", "schedule": {}}\'',
    ),
    "all jobs": ("jobs", "DELETE FROM :schema.jobs"),
    "a state": ("executions", "UPDATE :schema.executions SET state = 'skipped'"),
    "a run lost": ("executions", "DELETE FROM :schema.executions WHERE id = %(done)s"),
    "an owner": ("dead_letters", "UPDATE :schema.dead_letters SET owner = 'nobody'"),
    "a letter lost": ("dead_letters", "DELETE FROM :schema.dead_letters"),
    "a token": (
        "partitions",
        "UPDATE :schema.partitions SET token = 99, instance = 'x' WHERE token IS NOT NULL",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_any_damage_is_found_and_mended(
    damage: str, projections: Projections, scheduler: Scheduler, stage: Stage
) -> None:
    ids = played(scheduler, stage)
    name, statement = DAMAGES[damage]
    stage.database.query(stage.database.sql(statement), ids)
    outcome = projections.verify()
    assert {difference.projection for difference in outcome.differences} == {name}
    assert not outcome.ok
    assert projections.verify(*({"jobs", "executions"} - {name})).ok
    put_right(projections, outcome)
    stage.succeed(stage.attempt(stage.claim_fire(ids["job"])))
    assert projections.verify().ok


def test_a_difference_names_the_row_and_both_values(
    projections: Projections, scheduler: Scheduler, hand: Hand
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    hand.do("UPDATE :schema.next_runs SET fires = 7, failures = 2")
    (found,) = projections.verify("next_runs").differences
    assert (found.projection, found.id) == ("next_runs", str(job.id))
    assert found.in_use == {"fires": 7, "failures": 2}
    assert found.rebuilt == {"fires": 0, "failures": 0}
    hand.do("DELETE FROM :schema.next_runs")
    (found,) = projections.verify("next_runs").differences
    assert found.in_use is None
    assert found.rebuilt is not None
    assert found.rebuilt["id"] == str(job.id)


def test_every_difference_is_told_though_few_are_held(
    projections: Projections, scheduler: Scheduler, hand: Hand
) -> None:
    for _ in scheduler.register_many(JobSpec("a", schedule=Every(60)) for _ in range(1_200)):
        pass
    hand.do("UPDATE :schema.next_runs SET fires = 7")
    told: list[str] = []
    outcome = projections.verify("next_runs", found=lambda difference: told.append(difference.id))
    assert outcome.difference_count == len(set(told)) == 1_200
    assert len(outcome.differences) == 1_000


def test_jobs_keep_firing_while_everything_is_rebuilt(
    projections: Projections, scheduler: Scheduler, stage: Stage
) -> None:
    """Neither missed nor doubled: each claim is decided on the rows that are there by then."""
    job = scheduler.register("report", schedule=Every(60), retry=Retry(max_attempts=3))
    stage.lead(job.partition)
    fired: list[UUID] = []
    with ThreadPoolExecutor(1) as thread:
        rebuilds = thread.submit(lambda: [projections.rebuild() for _ in range(6)])
        while not rebuilds.done():
            running = stage.attempt(stage.claim_fire(job.id))
            fired.append(running.id)
            if len(fired) % 3 == 0:
                stage.fail(running, retry_in_s=0)
                running = stage.attempt(stage.claim(running.id))
            stage.succeed(running)
            scheduler.trigger(job.id)
            scheduler.register("other", schedule=Every(60))
        for outcome in rebuilds.result():
            assert outcome.differences == []
    assert len(fired) == len(set(fired)) > 3
    assert projections.verify().differences == []
    report = verify_log(Settings.read(stage.database.url, namespace=stage.database.namespace))
    assert [str(violation) for violation in report.violations] == []
    assert report.succeeded == len(fired)


def test_a_heartbeat_is_no_difference_and_outlives_the_rebuild(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    """An early look would take a running attempt for lost."""
    running = stage.attempt(stage.claim_fire(scheduler.register("a", schedule=Every(60)).id))
    hand.do("UPDATE :schema.next_runs SET due_at = due_at + interval '40 s' WHERE look")
    ((put_off,),) = hand.do("SELECT due_at FROM :schema.next_runs WHERE id = %s", running.id)
    assert projections.rebuild().differences == []
    assert hand.do("SELECT due_at FROM :schema.next_runs WHERE id = %s", running.id) == [(put_off,)]


def test_a_rebuild_gives_back_the_slots_that_nothing_holds_and_keeps_the_others(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    """One that is never given back would stop its lane for good."""
    job = scheduler.register("a", schedule=Every(60), concurrency_limit=1)
    running = stage.attempt(stage.claim_fire(job.id))
    ended = stage.claim(scheduler.trigger(job.id).id)
    stage.succeed(stage.attempt(ended))
    lane = f"job:{job.id}"
    hand.do("INSERT INTO :schema.lanes_in_use DEFAULT VALUES ON CONFLICT DO NOTHING")
    hand.do("DELETE FROM :schema.lane_slots WHERE id = %s", running.id)
    hand.do("INSERT INTO :schema.lane_slots (id, lane) VALUES (%s, %s)", ended.id, lane)
    for _ in range(2):  # the second time over the tables of the first
        assert projections.rebuild().exchanged
        assert hand.do("SELECT id, lane FROM :schema.lane_slots") == [(running.id, lane)]


def test_leases_and_publishing_marks_outlive_the_rebuild(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    stage.lead(scheduler.register("a", schedule=Every(60)).partition)
    hand.do("UPDATE :schema.partitions SET published = 4711 WHERE instance IS NOT NULL")
    columns = "SELECT to_jsonb(p) FROM :schema.partitions p ORDER BY partition"
    before = hand.do(columns)
    hand.do("UPDATE :schema.partitions SET token = NULL, version = 0")
    assert projections.rebuild("partitions").difference_count == 1
    assert hand.do(columns) == before


def test_a_killed_rebuild_goes_on_where_it_was(
    projections: Projections, scheduler: Scheduler, stage: Stage
) -> None:
    played(scheduler, stage)
    program = """
import os, sys
from horolog.interface.projections import Projections
from horolog.application.rebuild import pending
pending.MOST_EVENTS = 10
def watch(progress):
    if progress.position > 25:
        os.kill(os.getpid(), 9)
Projections(sys.argv[1], namespace=sys.argv[2], window=5).rebuild(watch=watch)
"""
    arguments = [sys.executable, "-c", program, stage.database.url, stage.database.namespace]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    status = projections.status()
    assert status.unfinished is not None
    assert 10 <= status.unfinished.position <= 30
    assert status.lag == status.position - status.unfinished.position > 0
    outcome = projections.rebuild()
    assert outcome.differences == []
    assert 0 < outcome.events <= stage.events() - 10
    (run,) = projections.status().runs
    assert (run.state, run.position, run.events) == (
        "exchanged",
        outcome.position,
        stage.events(),
    )


def test_what_an_older_fold_has_begun_is_begun_anew(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    played(scheduler, stage)
    hand.do("UPDATE :schema.next_runs SET fires = 7 WHERE kind = 'job'")
    assert not projections.verify().ok
    hand.do("UPDATE :schema.rebuilds SET fold_version = 0")
    assert projections.rebuild().events == stage.events()


def test_a_rebuild_goes_on_from_what_verify_has_built(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    played(scheduler, stage)
    hand.do("UPDATE :schema.next_runs SET fires = 7 WHERE kind = 'job'")
    found = projections.verify()
    assert found.events == stage.events()
    scheduler.register("later", schedule=Every(60))
    rebuilt = projections.rebuild("next_runs")
    assert rebuilt.events == 1
    assert rebuilt.difference_count == found.difference_count
    assert projections.verify().ok


def test_a_rollback_brings_back_the_tables_of_before_with_what_happened_since(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    ids = played(scheduler, stage)
    hand.do("UPDATE :schema.jobs SET owner = 'nobody' WHERE id = %s", ids["job"])
    projections.rebuild()
    later = scheduler.register("later", schedule=Every(60))
    stage.succeed(stage.attempt(stage.claim_fire(later.id)))
    assert projections.status().can_roll_back
    outcome = projections.roll_back()
    assert outcome.exchanged
    found = projections.verify()
    assert [(d.projection, d.id, d.in_use) for d in found.differences] == [
        ("jobs", str(ids["job"]), {"owner": "nobody"})
    ]
    stage.succeed(stage.attempt(stage.claim_fire(later.id)))
    put_right(projections, found)


def test_there_is_nothing_to_roll_back_to_before_the_first_rebuild(
    projections: Projections,
) -> None:
    with pytest.raises(NotAllowed, match="nothing to roll back to"):
        projections.roll_back()
    assert not projections.status().can_roll_back


def test_one_rebuild_at_a_time(projections: Projections, database: Database) -> None:
    with (
        Projections(database.url, namespace=database.namespace) as other,
        exclusively(database),
    ):
        with pytest.raises(NotAllowed, match="another process is rebuilding"):
            projections.verify()
        assert other.status().unfinished is None
    assert projections.verify().ok


def test_a_projection_that_there_is_not(projections: Projections) -> None:
    with pytest.raises(InvalidSetting, match="no projection 'nextruns'"):
        projections.rebuild("nextruns")


def test_privileges_views_and_index_names_outlive_the_rebuild(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    played(scheduler, stage)
    role = f"service_{stage.database.namespace}"
    described = (
        "SELECT c.relname, c.relkind::text, c.reloptions, a.grantee::regrole::text,"
        " string_agg(a.privilege_type, ',' ORDER BY a.privilege_type)"
        " FROM pg_class c LEFT JOIN LATERAL aclexplode(c.relacl) a ON a.grantee <> c.relowner"
        " WHERE c.relnamespace = :literal::regnamespace GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    )
    with psycopg.connect(stage.database.url, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        try:
            migrate(stage.database, grant_to=(role,))
            hand.do("CREATE VIEW :schema.late AS SELECT id, due_at FROM :schema.next_runs")
            before = hand.do(described)
            projections.rebuild()
            assert hand.do(described) == before
            scheduler.register("seen-through-the-view", schedule=Every(60))
            assert hand.do("SELECT count(*) FROM :schema.late") == hand.do(
                "SELECT count(*) FROM :schema.next_runs"
            )
        finally:
            owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
            owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_tables_that_somebody_holds_are_waited_for_without_the_log_lock(
    projections: Projections, scheduler: Scheduler, database: Database
) -> None:
    """A report that reads next_runs for long keeps the exchange from happening, and nobody else."""
    scheduler.register("a", schedule=Every(60))
    with ThreadPoolExecutor(1) as thread, database.session() as reader:
        with reader.transaction():
            reader.execute(database.sql("SELECT count(*) FROM :schema.next_runs"))
            done = thread.submit(projections.rebuild)
            for _ in range(20):
                scheduler.register("meanwhile", schedule=Every(60))
            assert not done.done()
        outcome = done.result()
    assert outcome.exchanged
    assert projections.verify().ok


# Events that no projection can read.


def plant(hand: Hand, stream: UUID, version: int, topic: str, state: bytes) -> int:
    """An event written by hand; its position."""
    table = "occurrence_events" if topic.startswith("occurrence") else "job_events"
    ((position,),) = hand.do(
        f"INSERT INTO :schema.{table} (position, recorded_at, stream, version, topic, state)"
        " VALUES (nextval(:positions), clock_timestamp(), %s, %s, %s, %s) RETURNING position",
        stream,
        version,
        topic,
        state,
    )
    return position


UNREADABLE = {
    "an unknown topic": ("occurrence.mystery.1", b"{}", "does not know its topic"),
    "truncated JSON": ("occurrence.attempted.1", b'{"attempt": 1, "lea', "EOF"),
    "what it lacks": ("job.registered.1", b"{}", "definition"),
    "a stream that has none before it": ("job.paused.1", b"{}", "begins with job.registered.1"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_rebuild_stops_at_an_event_that_it_cannot_apply_and_names_it(
    kind: str, projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    topic, state, why = UNREADABLE[kind]
    played(scheduler, stage)
    stream = uuid4()
    position = plant(hand, stream, 1, topic, state)
    after = scheduler.register("after-it", schedule=Every(60))
    stage.succeed(stage.attempt(stage.claim_fire(after.id)))
    with pytest.raises(ProjectionStopped):
        projections.verify()
    with pytest.raises(ProjectionStopped) as stopped:
        projections.rebuild()
    assert stopped.value.position == position
    for named in (str(position), f"{stream}:1", topic, why):
        assert named in str(stopped.value)
    assert isinstance(stopped.value, UnreadableEvent)
    status = projections.status()
    assert status.unfinished is not None
    assert status.unfinished.state == "stopped"
    assert status.unfinished.error == str(stopped.value)
    assert status.lag is not None
    assert status.lag > 0
    assert after.id in {job.id for job in scheduler.jobs(limit=1000)}

    outcome = projections.rebuild(skip=position, reason="written by hand")
    assert outcome.differences == []
    (skipped,) = projections.status().skipped
    assert (skipped.position, skipped.stream, skipped.skipped_topic) == (position, stream, topic)
    assert (skipped.actor, skipped.reason, skipped.error) == (
        "olga",
        "written by hand",
        str(stopped.value),
    )
    assert scheduler.log(topics=["log.event_skipped.1"])[0].reason == "written by hand"
    projections.skip(position)
    assert len(projections.status().skipped) == 1
    assert projections.verify().ok


@pytest.mark.parametrize(
    ("topic", "state"),
    [
        ("occurrence.mystery.1", b"{}"),
        ("occurrence.attempted.1", b'{"attempt": 1, "lea'),
        ("occurrence.attempted.1", b'{"attempt": 1,, "lease": 3}'),
    ],
    ids=["an unknown topic", "truncated JSON", "broken JSON"],
)
def test_it_stops_at_such_an_event_within_a_run_that_has_long_ended(
    topic: str,
    state: bytes,
    projections: Projections,
    scheduler: Scheduler,
    stage: Stage,
    hand: Hand,
) -> None:
    job = scheduler.register("report", schedule=Every(60))
    stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    claim, outcome = (
        hand.do("SELECT state FROM :schema.occurrence_events WHERE topic = %s", topic)[0][0]
        for topic in ("occurrence.claimed.1", "occurrence.succeeded.1")
    )
    stream = uuid4()
    plant(hand, stream, 1, "occurrence.claimed.1", claim)
    position = plant(hand, stream, 2, topic, state)
    plant(hand, stream, 3, "occurrence.succeeded.1", outcome)
    with pytest.raises(ProjectionStopped) as stopped:
        projections.rebuild("next_runs")
    assert stopped.value.position == position


def test_what_rests_on_a_skipped_event_is_passed_over_too(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    stream = uuid4()
    position = plant(hand, stream, 1, "job.registered.9", b"{}")
    plant(hand, stream, 2, "job.paused.1", b"{}")
    plant(hand, stream, 3, "job.resumed.1", b"{}")
    job = scheduler.register("a", schedule=Every(60))
    with pytest.raises(ProjectionStopped):
        projections.rebuild()
    assert projections.rebuild(skip=position).differences == []
    assert hand.do("SELECT id FROM :schema.jobs") == [(job.id,)]


def test_only_what_is_there_can_be_skipped(projections: Projections) -> None:
    with pytest.raises(InvalidSetting, match="no event at that position"):
        projections.rebuild(skip=4711)


def test_an_event_that_is_never_reached_by_a_window_of_its_own(
    database: Database, scheduler: Scheduler, stage: Stage
) -> None:
    """One append is folded whole, however many events it has and however small the windows are."""
    for _ in scheduler.register_many(JobSpec("a", schedule=Once(stage.now())) for _ in range(300)):
        pass
    with Projections(database.url, namespace=database.namespace, window=10) as small:
        assert small.verify().differences == []


def test_an_event_of_an_older_release_is_read_as_the_newest(
    projections: Projections,
    scheduler: Scheduler,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "_upcasters", dict(vars(events)["_upcasters"]))

    @upcast_from("occurrence.attempted.0", "occurrence.attempted.1")
    def _(state: dict[str, Any]) -> dict[str, Any]:
        return {"attempt": state["try"], "lease": 30.0}

    running = stage.attempt(stage.claim_fire(scheduler.register("a", schedule=Every(60)).id))
    tamper(
        stage.database,
        "occurrence_events",
        """UPDATE :schema.occurrence_events
           SET topic = 'occurrence.attempted.0', state = convert_to('{"try": 1}', 'UTF8')
           WHERE stream = %(id)s AND version = 2""",
        id=running.id,
    )
    assert projections.rebuild().differences == []


def test_a_slow_commit_is_waited_for_and_not_passed_over(
    projections: Projections, scheduler: Scheduler, stage: Stage, hand: Hand
) -> None:
    """Somebody stays in an append after its positions were drawn; the others draw theirs later."""
    hand.do(
        """CREATE FUNCTION :schema.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$"""
    )
    hand.do(
        """CREATE TRIGGER dawdle AFTER INSERT ON :schema.job_events FOR EACH ROW
           WHEN (new.position % 8 = 0) EXECUTE FUNCTION :schema.dawdle()"""
    )

    def register(number: int) -> None:
        for _ in range(5):
            scheduler.register(f"job-{number}", schedule=Every(60))

    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(register, number) for number in range(4)]
        while not all(future.done() for future in done):
            assert projections.verify().differences == []
    outcome = projections.rebuild()
    assert outcome.differences == []
    assert hand.do("SELECT count(*) FROM :schema.next_runs") == [(20,)]
    for job in scheduler.jobs(limit=100):
        stage.succeed(stage.attempt(stage.claim_fire(job.id)))
    assert projections.verify().differences == []
