"""Who tries more than the role allows is refused, by hand or through the one way into the log."""

import secrets
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from horolog import Every, Scheduler, StoreUnavailable
from horolog.application.decision import (
    Decision,
    Guard,
    NewEvent,
    decide_on_job,
    decide_on_occurrence,
)
from horolog.domain import event as events
from horolog.domain.event import Event
from horolog.domain.ids import partition_stream
from horolog.domain.job_events import Cancelled, Paused, Registered
from horolog.domain.occurrence import OccurrenceState, decide_claim
from horolog.domain.occurrence_events import Attempted, Skipped, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.partition import Elected
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.packing import ARGUMENTS
from horolog.infrastructure.postgres.roles.applying import apply, lacking
from horolog.infrastructure.postgres.roles.kinds import KINDS, OWNER, SAYS, topics
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.projections.rows import Execution, Leader, NextRun

OF_THE_OWNER = {"log.event_skipped.1", "log.occurrences_pruned.1"}

BEGINS = Attempted(attempt=1, lease=30.0, actor="eve")
SUCCEEDS = Succeeded(attempt=1, seconds=0.1, actor="eve")
SKIPS = Skipped(cause="cancelled", actor="eve")
EVENT: dict[type[Event], Event] = {
    Attempted: BEGINS,
    Succeeded: SUCCEEDS,
    Skipped: SKIPS,
    Paused: Paused(actor="eve"),
    Cancelled: Cancelled(actor="eve"),
    Elected: Elected(partition=0, instance="eve", lease=3600.0, actor="eve"),
}


class Place:
    """A namespace with a job, and logins that are members of the roles of one prefix."""

    def __init__(self, database: Database, prefix: str) -> None:
        self.database = database
        self.prefix = prefix
        with Scheduler(database.url, namespace=database.namespace) as owner:
            self.job = owner.register("a", schedule=Every(3600), key="a").id

    def ordered(self) -> OccurrenceState:
        """A run that waits for a time far ahead."""
        with Scheduler(self.database.url, namespace=self.database.namespace) as owner:
            at = datetime.now(UTC) + timedelta(days=9)
            run = owner.trigger(self.job, at=at)
        state = PostgresStates(self.database).occurrence(run.id)
        assert state is not None
        return state

    def claimed(self) -> OccurrenceState:
        """A run that waits for a worker."""
        state = self.ordered()
        job = PostgresStates(self.database).job(self.job)
        assert job is not None
        claim = decide_claim(
            state, job_version=job.version, token=1, window_s=60.0, origin=Origin("test")
        )
        decision, after = decide_on_occurrence(state, [claim])
        assert PostgresLog(self.database).append([decision]).verdicts == ["accepted"]
        return after

    def running(self) -> OccurrenceState:
        """A run that somebody has begun."""
        decision, after = decide_on_occurrence(self.claimed(), [BEGINS])
        assert PostgresLog(self.database).append([decision]).verdicts == ["accepted"]
        return after

    def login(self, *kinds: str) -> Database:
        """The database as a login that is a member of these kinds' roles; of nothing, without."""
        name = f"{self.prefix}_as_{'_'.join(kinds)}"
        with psycopg.connect(self.database.url, autocommit=True) as owner:
            owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            for kind in kinds:
                owner.execute(
                    sql.SQL("GRANT {} TO {}").format(
                        sql.Identifier(f"{self.prefix}_{kind}"), sql.Identifier(name)
                    )
                )
        return Database(make_conninfo(self.database.url, user=name), self.database.namespace)


def drop_roles(url: str, prefix: str) -> None:
    with psycopg.connect(url, autocommit=True) as owner:
        names = owner.execute(
            "SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (f"{prefix}_",)
        ).fetchall()
        for (name,) in names:
            role = sql.Identifier(name)
            owner.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
            owner.execute(sql.SQL("DROP OWNED BY {}").format(role))
            owner.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.fixture(scope="module")
def place(servers: object) -> Generator[Place]:
    """One namespace for all attempts: none of them changes anything."""
    from horolog.infrastructure.embedded import EmbeddedServers

    assert isinstance(servers, EmbeddedServers)
    found = servers.find()
    assert found is not None
    prefix = f"t_{secrets.token_hex(5)}"
    database = Database(found.database_url, prefix)
    migrate(database)
    apply(database, prefix)
    apply(database, prefix)
    yield Place(database, prefix)
    database.close()
    drop_roles(found.database_url, prefix)


@pytest.fixture(scope="module")
def logins(place: Place) -> Generator[dict[str, Database]]:
    opened = {kind: place.login(kind) for kind in (*KINDS, OWNER)}
    yield opened
    for one in opened.values():
        one.close()


def decision(place: Place, event: Event, stream: UUID | None = None) -> Decision:
    return Decision(Guard("nothing", place.job, 0), 0, [NewEvent(stream or place.job, 777, event)])


def append(database: Database) -> sql.Composed:
    return database.sql(f"SELECT :schema.append({', '.join(['%b'] * ARGUMENTS)})")


def test_every_event_is_of_somebody() -> None:
    said = {topic for kind in KINDS for topic in topics(kind)}
    assert said | OF_THE_OWNER == set(events.topics())
    assert not said & OF_THE_OWNER
    assert not set(topics("client")) & {e.topic for e in SAYS["worker"] if e not in SAYS["client"]}


def test_nothing_is_lacking_and_everything_is_the_owners(place: Place) -> None:
    assert lacking(place.database) == []
    rows = place.database.query(
        place.database.sql(
            "SELECT relname FROM pg_class WHERE relnamespace = :literal::regnamespace"
            " AND relkind IN ('r', 'p', 'v', 'S')"
            " AND pg_get_userbyid(relowner) <> :literal || '_owner'"
        )
    )
    assert rows == []


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("client", Attempted), ("client", Succeeded), ("client", Elected),
        ("worker", Paused), ("worker", Cancelled), ("worker", Elected),
        ("scanner", Attempted), ("scanner", Succeeded),
        ("auditor", Paused), ("auditor", Succeeded),
    ],
)  # fmt: skip
def test_an_event_of_another_kind_is_refused(
    place: Place, logins: dict[str, Database], kind: str, event: type[Event]
) -> None:
    with pytest.raises(StoreUnavailable, match=r"may not append|permission denied"):
        PostgresLog(logins[kind]).append([decision(place, EVENT[event])])


def test_a_right_that_is_lacking_is_told_at_once(
    place: Place, logins: dict[str, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    def waited(_seconds: float) -> None:
        pytest.fail("it was tried again, though no wait grants a right")

    monkeypatch.setattr("horolog.infrastructure.postgres.log.sleep", waited)
    with pytest.raises(StoreUnavailable, match=r"may not append|permission denied"):
        PostgresLog(logins["auditor"], patience_s=60).append([decision(place, EVENT[Paused])])


def test_an_event_in_the_wrong_table_is_refused(place: Place, logins: dict[str, Database]) -> None:
    arguments = PostgresLog(logins["client"]).arguments([decision(place, EVENT[Paused])])
    arguments[14] = type(arguments[14])([True])
    with pytest.raises(StoreUnavailable, match="may not append"):
        logins["client"].query(append(logins["client"]), arguments)


def rows_of(place: Place, what: str) -> Decision:
    """A decision without an event, or with a harmless one, and a row that says more."""
    now = PostgresClock(place.database).now()
    row = NextRun(
        id=place.job, job_id=place.job, partition=0, due_at=now + timedelta(days=999), look=False,
        look_after_s=None, state="scheduled", kind="job", version=1, fire_time=now, attempt=0,
        failures=0, fires=0,
    )  # fmt: skip
    other = UUID(int=7 << 76 | 8 << 60)
    match what:
        case "drop":
            return Decision(Guard("nothing", place.job, 0), 0, dropped=[place.job])
        case "put":
            return Decision(Guard("nothing", place.job, 0), 0, next_runs=[row])
        case "lead":
            leader = Leader(partition=0, version=9, instance="eve", token=9, lease_s=9e6)
            return Decision(Guard("nothing", place.job, 0), 0, leaders=[leader])
        case "forget":
            return Decision(Guard("nothing", place.job, 0), 0, forgotten=("ann",))
        case "drop another's":
            found = decision(place, EVENT[Skipped], other)
            found.dropped.append(place.job)
            return found
        case "end":
            found = decision(place, EVENT[Skipped], other)
            found.executions.append(
                Execution(
                    id=other, job_id=place.job, partition=0, fire_time=now, kind="schedule",
                    state="succeeded", version=1, attempt=1, failures=0,
                )
            )  # fmt: skip
            return found
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        ("client", "drop"), ("client", "put"), ("client", "lead"), ("client", "end"),
        ("worker", "drop"), ("worker", "put"), ("worker", "lead"), ("worker", "forget"),
        ("worker", "drop another's"), ("scanner", "forget"),
    ],
)  # fmt: skip
def test_rows_that_the_events_do_not_explain_are_refused(
    place: Place, logins: dict[str, Database], kind: str, what: str
) -> None:
    with pytest.raises(StoreUnavailable, match="may not append"):
        PostgresLog(logins[kind]).append([rows_of(place, what)])


def outcome_of(place: Place, what: str) -> Decision:
    """What a worker could say of a run, one word of it changed."""
    match what:
        case "that nobody claimed":
            return decide_on_occurrence(place.ordered(), [SUCCEEDS])[0]
        case "that nobody began":
            return decide_on_occurrence(place.claimed(), [SUCCEEDS])[0]
        case "before its claim, in place of it":
            state = place.ordered()
            found = decide_on_occurrence(state, [SKIPS])[0]
            found.guard = Guard("nothing", state.id, 0)
            return found
        case "that is a job":
            found = decision(place, EVENT[Succeeded])
            found.dropped.append(place.job)
            return found
        case "of another attempt":
            event = Succeeded(attempt=2, seconds=0.1, actor="eve")
            return decide_on_occurrence(place.running(), [event])[0]
        case "in a version behind the next":
            found = decide_on_occurrence(place.running(), [SUCCEEDS])[0]
            found.events = [replace(one, version=one.version + 1) for one in found.events]
            return found
        case "with a number that stops who reads it":
            found = decide_on_occurrence(place.claimed(), [BEGINS])[0]
            found.next_runs = [replace(row, attempt=2**31 - 1) for row in found.next_runs]
            return found
        case "as one of another job":
            found = decide_on_occurrence(place.running(), [SUCCEEDS])[0]
            found.executions = [replace(row, job_id=UUID(int=3)) for row in found.executions]
            return found
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "that nobody claimed", "that nobody began", "before its claim, in place of it",
        "that is a job", "of another attempt", "in a version behind the next",
        "with a number that stops who reads it", "as one of another job",
    ],
)  # fmt: skip
def test_a_worker_speaks_of_runs_that_are_at_its_hands_and_as_they_are(
    place: Place, logins: dict[str, Database], what: str
) -> None:
    with pytest.raises(StoreUnavailable, match="may not append"):
        PostgresLog(logins["worker"]).append([outcome_of(place, what)])


def test_a_late_outcome_is_refused_as_late_and_not_for_want_of_a_right(
    place: Place, logins: dict[str, Database]
) -> None:
    log, state = PostgresLog(logins["worker"]), place.running()
    ends = decide_on_occurrence(state, [SUCCEEDS])[0]
    assert log.append([ends]).verdicts == ["accepted"]
    assert log.append([ends]).verdicts == ["conflict"]


def command_of(place: Place, what: str) -> Decision:
    """What a client could say beyond the jobs and runs that it speaks of."""
    job = PostgresStates(place.database).job(place.job)
    assert job is not None
    pauses = decide_on_job(job, job.id, [Paused(actor="eve")])[0]
    match what:
        case "a pause of a partition":
            stream = partition_stream(place.database.namespace, 5)
            return Decision(
                Guard("nothing", stream, 0), 5, [NewEvent(stream, 1, pauses.events[0].event)]
            )
        case "a job in place of a partition's election":
            stream = partition_stream(place.database.namespace, 5)
            event = Registered(definition=job.definition, partition=5, actor="eve")
            return Decision(Guard("nothing", stream, 0), 5, [NewEvent(stream, 1, event)])
        case "a run that is skipped before anybody knows of it":
            run = UUID(int=9 << 76 | 8 << 60)
            return Decision(Guard("nothing", run, 0), 0, [NewEvent(run, 1, EVENT[Skipped])])
        case "a version behind the next":
            pauses.events = [replace(one, version=one.version + 5) for one in pauses.events]
            return pauses
        case "another job's row":
            with Scheduler(place.database.url, namespace=place.database.namespace) as owner:
                other = owner.register("b", schedule=Every(3600), key="b").id
            pauses.dropped.append(other)
            return pauses
        case "another job's row as one of its own":
            state = place.running()
            row = decide_on_occurrence(place.claimed(), [BEGINS])[0].next_runs[0]
            pauses.next_runs = [replace(row, id=state.id, state="retrying", job_id=UUID(int=4))]
            return pauses
        case _:
            raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "a pause of a partition", "a job in place of a partition's election",
        "a run that is skipped before anybody knows of it", "a version behind the next",
        "another job's row", "another job's row as one of its own",
    ],
)  # fmt: skip
def test_a_client_speaks_of_jobs_and_runs_that_there_are_and_of_no_others(
    place: Place, logins: dict[str, Database], what: str
) -> None:
    with pytest.raises(StoreUnavailable, match="may not append"):
        PostgresLog(logins["client"]).append([command_of(place, what)])


def test_a_client_sets_rules_of_alerts_but_none_that_runs_a_command(
    place: Place, logins: dict[str, Database]
) -> None:
    client = logins["client"]
    with Scheduler(client.url, namespace=client.namespace) as scheduler:
        scheduler.set_alert("ann", dead_letters=1)
        with pytest.raises(StoreUnavailable, match="may not have scanners run a command"):
            scheduler.set_alert("ann", dead_letters=1, command=["touch", "/tmp/eve"])
    with Scheduler(place.database.url, namespace=client.namespace) as owner:
        owner.set_alert("ann", dead_letters=1, command=["page"])
    with pytest.raises(StoreUnavailable, match="may not have scanners run a command"):
        client.query(
            client.sql('UPDATE :schema.alert_rules SET rule = rule || \'{"command": ["eve"]}\'')
        )


BY_HAND = {
    "change an event": "UPDATE :schema.job_events SET state = '\\x7b7d'",
    "delete an event": "DELETE FROM :schema.occurrence_events",
    "truncate the log": "TRUNCATE :schema.job_events",
    "insert an event": "INSERT INTO :schema.job_events SELECT 9, now(), gen_random_uuid(), 1,"
    " 'occurrence.succeeded.1', '\\x7b7d'",
    "break the chain": "INSERT INTO :schema.chain VALUES (9, 9, 1, '', '')",
    "move a fire": "UPDATE :schema.next_runs SET due_at = 'infinity'",
    "take a lease": "UPDATE :schema.partitions SET instance = 'eve'",
    "forge a result": "INSERT INTO :schema.executions SELECT now(), now(), gen_random_uuid(),"
    " gen_random_uuid(), 1, 1, 0, 0, 'succeeded', 'schedule'",
    "lose a dead letter": "DELETE FROM :schema.dead_letters",
    "change a job": "UPDATE :schema.jobs SET name = 'eve'",
    "count slots anew": "SELECT :schema.recount_slots()",
    "say who may what": "INSERT INTO :schema.may_append VALUES ('client', 'occurrence.claimed.1')",
    "be another kind": "UPDATE :schema.roles SET role = session_user WHERE kind = 'scanner'",
    "grant to oneself": "SELECT :schema.grant_service(session_user)",
    "draw a position": "SELECT nextval(:positions)",
    "set positions back": "SELECT setval(:positions, 1)",
    "let others listen to a month": "SELECT :schema.exchange_tables('x', '{jobs}')",
    "make a table": "CREATE TABLE :schema.mine (a int)",
    "replace append": "CREATE FUNCTION :schema.append(a int) RETURNS int"
    " LANGUAGE sql AS 'SELECT 1'",
    "drop a trigger": "ALTER TABLE :schema.job_events DISABLE TRIGGER ALL",
    "learn wrapped keys": "SELECT wrapped FROM :schema.subject_keys",
    "learn the message key": "SELECT message_key FROM :schema.namespace",
    "learn webhooks": "SELECT rule FROM :schema.alert_rules",
    "pass for a scanner": "SELECT * FROM"
    " :schema.renew_leases('eve', 'scanner', 99, '{}', '{}', '{}')",
    "announce a scanner": "SELECT :schema.announce('eve', 'scanner', 99, '{}')",
    "lead on paper": "INSERT INTO :schema.instances VALUES ('eve', 'scanner', now(), 'infinity')",
    "send a scanner away": "SELECT :schema.leave('someone')",
    "say it is published": "SELECT :schema.mark_published('eve', '{0}', '{1}', '{99}')",
    "limit a queue": "SELECT :schema.limit_queue('default', 1, NULL, 'eve')",
    "give a command": "SELECT :schema.inbox_put('{\"partition\": 0}')",
    "take a command": "DELETE FROM :schema.inbox",
    "append at the commit": "INSERT INTO :schema.at_commit (guard_of) VALUES ('{}')",
    "make a month": "SELECT :schema.create_month_partitions(0, 90)",
    "follow as another": "UPDATE :schema.tracking SET position = 0",
    "count": "UPDATE :schema.counters SET value = 0",
}

MAY = {
    "client": {"learn wrapped keys", "learn webhooks", "limit a queue", "give a command"},
    "scanner": {
        "learn wrapped keys", "learn the message key", "learn webhooks", "pass for a scanner",
        "send a scanner away", "say it is published", "take a command", "append at the commit",
        "make a month", "count",
    },
    "worker": {
        "learn wrapped keys", "learn the message key", "append at the commit", "follow as another",
        "count",
    },
    "auditor": set[str](),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_else_can_be_done_by_hand(
    place: Place, logins: dict[str, Database], kind: str
) -> None:
    done: set[str] = set()
    with psycopg.connect(logins[kind].url) as connection:
        for name, statement in BY_HAND.items():
            try:
                connection.execute(place.database.sql(statement), prepare=False)
            except psycopg.errors.InsufficientPrivilege:
                pass
            except psycopg.Error as error:
                # It got as far as to be wrong.
                done.add(name) if name in MAY[kind] else pytest.fail(f"{name}: {error}")
            else:
                done.add(name)
            finally:
                connection.rollback()
    assert done == MAY[kind]


def test_who_is_a_member_of_nothing_sees_nothing(place: Place) -> None:
    stranger = place.login()
    with pytest.raises(StoreUnavailable, match="permission denied for schema"):
        stranger.query(stranger.sql("SELECT * FROM :schema.log"))
    stranger.close()


@pytest.mark.parametrize("kind", [*KINDS, OWNER])
def test_a_login_of_one_namespace_neither_reads_nor_writes_another(
    place: Place, logins: dict[str, Database], database: Database, kind: str
) -> None:
    own, other = logins[kind], Database(logins[kind].url, database.namespace)
    assert own.query(own.sql("SELECT count(*) FROM :schema.log"))[0][0] > 0
    for statement in (
        "SELECT * FROM :schema.log",
        "SELECT * FROM :schema.jobs",
        "SELECT message_key FROM :schema.namespace",
        "SELECT :schema.inbox_look('{}')",
        "INSERT INTO :schema.roles VALUES ('client', session_user)",
    ):
        with pytest.raises(StoreUnavailable, match="permission denied for schema"):
            other.query(other.sql(statement))
    with pytest.raises(StoreUnavailable, match="permission denied for schema"):
        PostgresLog(other).append([decision(place, EVENT[Paused])])
    other.close()


def test_news_on_another_namespaces_channel_tells_times_and_ids_alone(
    place: Place, logins: dict[str, Database], database: Database
) -> None:
    with psycopg.connect(logins["auditor"].url, autocommit=True) as stranger:
        for channel in ("due", "log", "stop", "forgotten"):
            name = sql.Identifier(f"{database.namespace}_{channel}")
            stranger.execute(sql.SQL("LISTEN {}").format(name))
        with Scheduler(database.url, namespace=database.namespace) as scheduler:
            job = scheduler.register(
                "canary.name",
                schedule=Every(1),
                key="canary-key",
                payload={"card": "canary-payload"},
                owner="canary-owner",
            )
            scheduler.trigger(job.id, reason="canary-reason")
            scheduler.cancel(job.id, reason="canary-reason")
        heard = [one.payload for one in stranger.notifies(timeout=2, stop_after=3)]
    assert heard
    assert not [one for one in heard if "canary" in one]


def test_set_role_and_a_search_path_of_ones_own_change_nothing(
    place: Place, logins: dict[str, Database]
) -> None:
    with psycopg.connect(logins["client"].url, autocommit=True) as connection:
        for kind in ("worker", "scanner", "owner"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(
                    sql.SQL("SET ROLE {}").format(sql.Identifier(f"{place.prefix}_{kind}"))
                )
        connection.execute(
            "CREATE FUNCTION pg_temp.starts_with(text, text) RETURNS boolean"
            " LANGUAGE sql AS 'SELECT true'"
        )
        connection.execute("SET search_path = pg_temp, pg_catalog")
        log = PostgresLog(logins["client"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not append"):
            connection.execute(
                append(logins["client"]), log.arguments([decision(place, EVENT[Succeeded])])
            )


def test_a_login_of_two_kinds_may_do_what_both_may(place: Place) -> None:
    both = place.login("client", "worker")
    log = PostgresLog(both)
    with Scheduler(both.url, namespace=both.namespace) as scheduler:
        assert scheduler.pause(place.job).status == "paused"
        scheduler.resume(place.job)
    begins, _ = decide_on_occurrence(place.claimed(), [BEGINS])
    assert log.append([begins]).verdicts == ["accepted"]
    with pytest.raises(StoreUnavailable, match=r"partition\.elected\.1"):
        log.append([decision(place, EVENT[Elected])])
    both.close()


def test_the_owner_cannot_change_an_event_either(place: Place, logins: dict[str, Database]) -> None:
    owner = logins[OWNER]
    assert PostgresLog(owner).append([decision(place, EVENT[Cancelled], UUID(int=2))])
    with pytest.raises(StoreUnavailable, match="append-only"):
        owner.query(owner.sql("DELETE FROM :schema.job_events"))


def test_doctor_names_a_missing_grant_and_the_next_migration_gives_it(
    database: Database, namespace: str
) -> None:
    apply(database, namespace)
    try:
        worker = sql.Identifier(f"{namespace}_worker")
        database.query(database.sql("REVOKE EXECUTE ON FUNCTION :schema.append FROM ") + worker)
        database.query(database.sql("DELETE FROM :schema.may_append WHERE kind = 'scanner'"))
        assert lacking(database) == [
            f"{namespace}_worker lacks EXECUTE on function append",
            f"{namespace}_scanner may not append just what this release says",
        ]
        migrate(database)
        assert lacking(database) == []
    finally:
        drop_roles(database.url, namespace)
