"""Data of subjects: in the log as cipher text only, shown to who may see it, and forgotten."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.interface.test_hash_chain import check as check_chain

from horolog import (
    AsyncScheduler,
    Every,
    JobSpec,
    KeyConflict,
    NoMasterKey,
    NotAllowed,
    Once,
    Scheduler,
    Settings,
    SubjectForgotten,
)
from horolog.domain.failure import FailureKind
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence_events import DeadLettered, Failed
from horolog.domain.sealed import envelope, sealed_text, token_of
from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
from horolog.infrastructure.privacy.keyring import CachedKeyring
from horolog.infrastructure.privacy.master_keys import MasterKeys, new_master_key
from horolog.infrastructure.privacy.rotation import rotate
from horolog.interface.projections import Projections
from horolog.interface.verification import verify_log

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.interface.conftest import Stage

    from horolog.infrastructure.postgres.database import Database

MASTER = new_master_key()
CANARY = "canary-4111-1111"
CARD = {"card": CANARY, "amount": 10}


def settings(database: Database, master: str = MASTER, **more: str) -> Settings:
    environment = {"HOROLOG_MASTER_KEY": master, **more} if master else more
    return Settings.read(
        database.url, namespace=database.namespace, actor="ann", environment=environment
    )


def client(database: Database, master: str = MASTER, *, reveal: bool = False) -> Scheduler:
    return Scheduler(settings=settings(database, master), reveal=reveal)


@pytest.fixture
def scheduler(database: Database) -> Generator[Scheduler]:
    with client(database) as opened:
        yield opened


@pytest.fixture
def revealing(database: Database) -> Generator[Scheduler]:
    with client(database, reveal=True) as opened:
        yield opened


@pytest.fixture
def ring(database: Database) -> CachedKeyring:
    """A worker's keyring."""
    masters = MasterKeys.read(MASTER)
    return CachedKeyring(PostgresSubjectKeys(database), lambda: masters, database.namespace)


class Work:
    """What a worker does with runs of jobs that have a subject."""

    def __init__(self, stage: Stage, ring: CachedKeyring) -> None:
        self.stage = stage
        self.ring = ring

    def seal(self, run: OccurrenceState, value: Any) -> Any:
        job = self.stage.states.job(run.job_id)
        assert job is not None
        token = token_of(job.definition.payload)
        assert token is not None
        opened = self.ring.open(token)
        assert opened is not None
        return opened.seal(run.id, value)

    def succeeded(self, job: Any) -> OccurrenceState:
        run = self.stage.attempt(self.stage.claim_fire(job.id))
        return self.stage.succeed(run, envelope(self.seal(run, {"charged": CANARY})))

    def dead(self, job: Any) -> OccurrenceState:
        run = self.stage.attempt(self.stage.claim_fire(job.id))
        error = sealed_text(self.seal(run, f"ValueError: no such card: {CANARY}"))
        kind: FailureKind = "permanent"
        return self.stage.go_on(
            run,
            Failed(attempt=run.attempt, kind=kind, error=error, actor="worker-1"),
            DeadLettered(cause="hopeless", owner="billing", kind=kind, error=error),
        )


@pytest.fixture
def work(stage: Stage, ring: CachedKeyring) -> Work:
    return Work(stage, ring)


def all_rows(database: Database) -> str:
    """Everything that the namespace holds, as text."""
    tables = database.query(
        database.sql("SELECT relname FROM pg_class WHERE relnamespace = :literal::regnamespace"
                     " AND relkind IN ('r', 'p') AND NOT relispartition")
    )  # fmt: skip
    found: list[str] = []
    for (table,) in tables:
        rows = database.query(database.sql(f'SELECT t FROM :schema."{table}" t'))
        found += [repr(row) for row in rows]
    for (state,) in database.query(
        database.sql("SELECT state FROM :schema.job_events"
                     " UNION ALL SELECT state FROM :schema.occurrence_events")
    ):  # fmt: skip
        found.append(bytes(state).decode())
    return "\n".join(found)


def everything_asked(scheduler: Scheduler, job_id: Any) -> dict[str, str]:
    """Every answer that could hold a payload, a result or an error message, as text."""
    runs = scheduler.occurrences(job_id=job_id)
    now = max(event.recorded_at for event in scheduler.log(limit=10_000))
    return {
        "job": repr(scheduler.job(job_id)),
        "jobs": repr(scheduler.jobs()),
        "as of": repr(scheduler.job(job_id, as_of=now)) + repr(scheduler.jobs(as_of=now)),
        "by subject": repr(scheduler.jobs(subject="ann")),
        "occurrences": repr(runs) + repr([scheduler.occurrence(run.id) for run in runs]),
        "history": json.dumps([e.to_dict() for e in scheduler.history(job_id)])
        + json.dumps([e.to_dict() for run in runs for e in scheduler.history(run.id)]),
        "log": repr(scheduler.log(limit=10_000)),
        "changes": repr(scheduler.changes(job_id)),
        "explanations": "".join(str(scheduler.explain(run.id)) for run in runs),
        "executions": repr(scheduler.executions()),
        "dead letters": repr(scheduler.dead_letters()),
        "due": repr(scheduler.due_at(now)),
    }


def test_payloads_results_and_errors_are_nowhere_in_the_database(
    database: Database, scheduler: Scheduler, work: Work
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="pay-ann")
    work.succeeded(job)
    work.dead(job)
    scheduler.update(job.id, payload={"card": CANARY, "amount": 11})
    scheduler.pause(job.id)
    assert scheduler.register("other", schedule=Every(60), payload={"note": "seen"}).payload
    rows = all_rows(database)
    assert "seen" in rows
    assert CANARY not in rows
    assert MASTER not in rows


def test_answers_say_that_there_is_data_and_not_which(scheduler: Scheduler, work: Work) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    done, dead = work.succeeded(job), work.dead(job)
    scheduler.update(job.id, payload={"card": CANARY})
    assert (job.subject, job.payload) == ("ann", {"$sealed": True})
    assert scheduler.occurrence(done.id).result == {"$sealed": True}
    assert scheduler.occurrence(dead.id).error == "(sealed)"
    assert scheduler.dead_letters()[0].error == "(sealed)"
    assert "and returned (sealed)" in str(scheduler.explain(done.id))
    assert "failed after 0.000 s (permanent): (sealed)" in str(scheduler.explain(dead.id))
    for where, said in everything_asked(scheduler, job.id).items():
        assert CANARY not in said, where
        assert "v1." not in said, where


def test_who_asks_for_it_and_has_the_key_sees_the_data(
    scheduler: Scheduler, revealing: Scheduler, work: Work
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    done, dead = work.succeeded(job), work.dead(job)
    assert revealing.job(job.id).payload == CARD
    assert revealing.jobs(subject="ann")[0].payload == CARD
    assert revealing.occurrence(done.id).result == {"charged": CANARY}
    assert revealing.occurrence(dead.id).error == f"ValueError: no such card: {CANARY}"
    assert revealing.history(job.id)[0].data["definition"]["payload"] == CARD
    assert revealing.dead_letters()[0].error.endswith(CANARY)


def test_a_registration_that_is_repeated_is_the_same_job(scheduler: Scheduler) -> None:
    def register(**changed: Any) -> Any:
        stated: dict[str, Any] = {
            "schedule": Every(60),
            "payload": CARD,
            "key": "pay-ann",
            "subject": "ann",
        }
        return scheduler.register("pay", **(stated | changed))

    first = register()
    again = register()
    assert (again.id, again.version) == (first.id, 1)
    assert scheduler.update(first.id, payload=CARD).version == 1
    with pytest.raises(KeyConflict, match="differs in payload:"):
        register(payload={"card": "other"})
    assert register(payload={"card": "other"}, replace=True).version == 2
    with pytest.raises(KeyConflict, match="its subject cannot be"):
        register(payload={"card": "other"}, subject="bob", replace=True)
    spec = JobSpec(
        "pay", schedule=Every(60), payload={"card": "other"}, key="pay-ann", subject="ann"
    )
    assert scheduler.apply([spec]).unchanged == ("pay-ann",)
    assert [job.version for job in scheduler.register_many([spec])] == [2]


def test_forgetting_erases_the_data_and_cancels_what_is_to_run(
    database: Database, scheduler: Scheduler, revealing: Scheduler, work: Work, stage: Stage
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="pay-ann")
    other = scheduler.register("pay", schedule=Every(60), payload={"card": 1}, subject="bob")
    once = scheduler.register(
        "pay", schedule=Once(stage.now() + timedelta(hours=1)), payload=CARD, subject="ann"
    )
    done, dead = work.succeeded(job), work.dead(job)
    scheduler.update(job.id, payload={"card": CANARY})
    running = stage.attempt(stage.claim_fire(job.id))
    claimed = stage.claim_fire(job.id)
    before = all_events(database)

    said = scheduler.forget("ann", reason="request 113")

    assert (said.already, said.jobs_cancelled, said.dead_letters_discarded) == (False, 2, 1)
    # The log is what it was, with some events more.
    assert all_events(database)[: len(before)] == before
    (event,) = [one for one in scheduler.log(limit=10_000) if one.topic == "subject.forgotten.1"]
    assert (event.actor, event.reason, event.data) == ("ann", "request 113", {"subject": "ann"})
    for asking in (scheduler, revealing):
        assert asking.job(job.id).payload == {"$erased": True}
        assert asking.occurrence(done.id).result == {"$erased": True}
        assert asking.occurrence(dead.id).state == "discarded"
        assert "(erased)" in str(asking.explain(dead.id))
        assert "and returned (erased)" in str(asking.explain(done.id))
        for where, told in everything_asked(asking, job.id).items():
            assert CANARY not in told, where
            assert "v1." not in told, where
    assert scheduler.job(job.id).status == scheduler.job(once.id).status == "cancelled"
    assert "forgotten: request 113" in str(scheduler.history(job.id)[-1].reason)
    assert scheduler.occurrence(claimed.id).state == "skipped"
    assert scheduler.occurrence(running.id).state == "stopping"
    assert revealing.job(other.id).payload == {"card": 1}
    assert scheduler.job(other.id).status == "active"
    assert scheduler.dead_letters() == []


def all_events(database: Database) -> list[Any]:
    text = (
        "SELECT position, stream, version, topic, state FROM :schema.job_events UNION ALL"
        " SELECT position, stream, version, topic, state FROM :schema.occurrence_events"
        " ORDER BY position"
    )
    return database.query(database.sql(text))


def test_verify_the_chain_and_a_rebuild_find_nothing_amiss_afterwards(
    database: Database, scheduler: Scheduler, work: Work
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    done = work.succeeded(job)
    work.dead(job)
    scheduler.forget("ann")
    report = verify_log(settings(database))
    assert report.ok, report.violations
    assert check_chain(database).ok
    with Projections(settings=settings(database, "")) as projections:
        assert projections.verify().difference_count == 0
        rebuilt = projections.rebuild("jobs", "next_runs", "executions", "dead_letters")
        assert rebuilt.difference_count == 0
    assert scheduler.job(job.id).payload == {"$erased": True}
    assert scheduler.occurrence(done.id).result == {"$erased": True}
    assert all_rows(database).count(CANARY) == 0


def test_nothing_of_a_forgotten_subject_comes_back(
    database: Database, scheduler: Scheduler, work: Work
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="pay-ann")
    dead = work.dead(job)
    with client(database) as late:
        # This one has the key at hand when it is destroyed.
        late.register("pay", schedule=Every(60), payload=CARD, subject="ann")
        scheduler.forget("ann")
        with pytest.raises(SubjectForgotten, match="'ann' was forgotten"):
            late.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    with pytest.raises(SubjectForgotten):
        scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    with pytest.raises(SubjectForgotten):
        scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="pay-ann")
    with pytest.raises(SubjectForgotten):
        list(scheduler.register_many([JobSpec("pay", schedule=Every(60), subject="ann")]))
    with pytest.raises(NotAllowed):
        scheduler.trigger(job.id)
    with pytest.raises(NotAllowed):
        scheduler.replay(dead.id)
    assert {one.status for one in scheduler.jobs()} == {"cancelled"}


def test_forgetting_again_does_what_is_left(
    database: Database, scheduler: Scheduler, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    from horolog.application.privacy import forgetting

    def cut_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "cancel", cut_off)
        with pytest.raises(KeyboardInterrupt):
            scheduler.forget("ann")
    assert scheduler.jobs(status="active", subject="ann")[0].payload == {"$erased": True}
    again = scheduler.forget("ann")
    assert (again.already, again.jobs_cancelled) == (True, 3)
    events = stage.events()
    last = scheduler.forget("ann", reason="once more")
    assert (last.already, last.jobs_cancelled, stage.events()) == (True, 0, events)
    assert last.forgotten_at == again.forgotten_at


async def test_the_async_scheduler_forgets_too(database: Database) -> None:
    async with AsyncScheduler(settings=settings(database), reveal=True) as scheduler:
        job = await scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
        assert job.payload == CARD
        assert (await scheduler.forget("ann")).jobs_cancelled == 1
        assert (await scheduler.job(job.id)).payload == {"$erased": True}
        async for event in scheduler.follow(topics="job.registered.1"):
            assert event.data["definition"]["payload"] == {"$erased": True}
            break


def test_without_the_master_key_everything_but_the_data_is_there(
    database: Database, scheduler: Scheduler
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann", key="pay-ann")
    with client(database, "") as without, client(database, "", reveal=True) as curious:
        assert without.job(job.id).payload == {"$sealed": True}
        without.pause(job.id)
        without.resume(job.id)
        with pytest.raises(NoMasterKey, match="add that one"):
            curious.job(job.id)
        with pytest.raises(NoMasterKey):
            without.register("pay", schedule=Every(60), subject="bob")
        with pytest.raises(NoMasterKey, match="nothing is lost"):
            without.update(job.id, payload={"card": "new"})
        assert without.forget("ann").jobs_cancelled == 1


def test_a_master_key_from_a_file(database: Database, scheduler: Scheduler, tmp_path: Any) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    file = tmp_path / "master"
    file.write_text(f"{new_master_key()}\n{MASTER}\n")
    stated = settings(database, "", HOROLOG_MASTER_KEY_FILE=str(file))
    assert MASTER not in repr(stated)
    with Scheduler(settings=stated, reveal=True) as reading:
        assert reading.job(job.id).payload == CARD


def test_the_master_key_is_changed_while_all_goes_on(
    database: Database, scheduler: Scheduler
) -> None:
    jobs = [
        scheduler.register("pay", schedule=Every(60), payload=CARD, subject=f"s{number}")
        for number in range(7)
    ]
    scheduler.forget("s0")
    new = new_master_key()
    store = PostgresSubjectKeys(database)
    both = MasterKeys.read(f"{new} {MASTER}")
    with pytest.raises(NoMasterKey):
        rotate(store, MasterKeys.read(new), database.namespace)
    assert rotate(store, both, database.namespace).wrapped == 6
    assert rotate(store, both, database.namespace).wrapped == 0
    assert store.counts() == {both.current: 6, None: 1}
    with client(database, new, reveal=True) as reading:
        assert [reading.job(job.id).payload for job in jobs] == [{"$erased": True}, *[CARD] * 6]
    with client(database, MASTER, reveal=True) as outdated, pytest.raises(NoMasterKey):
        outdated.job(jobs[1].id)


def test_keys_that_a_restored_table_brings_back_are_destroyed_again(
    database: Database, scheduler: Scheduler, revealing: Scheduler
) -> None:
    job = scheduler.register("pay", schedule=Every(60), payload=CARD, subject="ann")
    backup = database.query(database.sql("SELECT wrapped, master FROM :schema.subject_keys"))[0]
    scheduler.forget("ann")
    database.query(
        database.sql(
            "UPDATE :schema.subject_keys SET wrapped = %s, master = %s, forgotten_at = NULL"
        ),
        backup,
    )
    with client(database, reveal=True) as reading:
        assert reading.job(job.id).payload == CARD
    store = PostgresSubjectKeys(database)
    assert rotate(store, MasterKeys.read(MASTER), database.namespace).destroyed == 1
    with client(database, reveal=True) as reading:
        assert reading.job(job.id).payload == {"$erased": True}


def test_jobs_without_a_subject_need_no_keys(database: Database, stage: Stage) -> None:
    with client(database, "", reveal=True) as plain:
        job = plain.register("pay", schedule=Every(60), payload=CARD)
        assert plain.job(job.id).payload == CARD
        assert plain.job(job.id).subject is None
    assert PostgresSubjectKeys(database).counts() == {}
