"""The next-run index in bounded pages, and the news of it."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from tests.contracts.ear import Ear

from horolog.application.decision import Decision, decide_on_job
from horolog.application.scanner.clock import microseconds
from horolog.application.scanner.looking import Extension
from horolog.application.scanner.news import Reread, read_news
from horolog.application.scanner.sweep import BEGINNING, FIRST, Range
from horolog.application.scanner.wheel import Entry
from horolog.domain.definition import JobDefinition
from horolog.domain.job import decide_registration
from horolog.domain.origin import Origin
from horolog.domain.schedule import Once
from horolog.infrastructure.postgres.arrays import Instants, SmallInts, Uuids
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.due_index import PostgresDueIndex
from horolog.infrastructure.postgres.due_news import PostgresDueNews
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.threaded import DedicatedThread

NOW = datetime.now(UTC).replace(microsecond=0)
ALWAYS = 1 << 60


@pytest.fixture
def database(database_url: str, namespace: str) -> Iterator[Database]:
    database = Database(database_url, namespace)
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def index(database: Database) -> Iterator[PostgresDueIndex]:
    thread = DedicatedThread("index")
    yield PostgresDueIndex(database, PostgresStates(database), thread)
    thread.close()


def registration(at: datetime, partition: int) -> Decision:
    definition = JobDefinition(name="a.b", schedule=Once(at).to_json())
    events = decide_registration(
        definition, partition=partition, key=None, now=at, origin=Origin("test")
    )
    return decide_on_job(None, uuid4(), events)[0]


def put_looks(database: Database, count: int, *, state: str = "claimed") -> list[UUID]:
    rows = database.query(
        database.sql(
            "INSERT INTO :schema.next_runs SELECT now() + n * interval '1 ms', now(), n,"
            " gen_random_uuid(), gen_random_uuid(), 1, 1, 0, 0, 5, true, %s, 'schedule'"
            " FROM generate_series(1, %s) n RETURNING id"
        ),
        (state, count),
    )
    return [row[0] for row in rows]


async def test_a_page_is_bounded_ordered_and_resumed_behind_its_last_row(
    database: Database, index: PostgresDueIndex
) -> None:
    at = NOW + timedelta(hours=1)
    decisions = [registration(at + timedelta(seconds=n % 3), n % 2) for n in range(40)]
    PostgresLog(database).append(decisions)
    spans = [Range(partition, BEGINNING, FIRST, ALWAYS) for partition in (1, 0, 9)]
    pages = await index.fires(spans, 15)
    assert [len(page) for page in pages] == [15, 15, 0]
    for page, span in zip(pages, spans, strict=True):
        assert page == sorted(page)
        assert {entry.partition for entry in page} <= {span.partition}
    last = pages[0][-1]
    [rest] = await index.fires([Range(1, last.due_us, last.id, ALWAYS)], 15)
    assert len(rest) == 5
    assert rest[0] > last
    everything = {entry.id for entry in pages[0] + rest}
    assert everything == {d.guard.id for d in decisions if d.partition == 1}


async def test_a_range_ends_where_it_should_and_holds_no_looks(
    database: Database, index: PostgresDueIndex
) -> None:
    put_looks(database, 3)
    at = NOW + timedelta(hours=1)
    PostgresLog(database).append([registration(at + timedelta(seconds=n), 5) for n in range(4)])
    until = microseconds(at + timedelta(seconds=2))
    [page] = await index.fires([Range(5, BEGINNING, FIRST, until)], 10)
    assert [entry.due_us for entry in page][-1] == until
    assert len(page) == 3
    [looks] = await index.looks([Range(5, BEGINNING, FIRST, ALWAYS)], 10)
    assert [look.position for look in looks] == [1, 2, 3]
    assert {look.state for look in looks} == {"claimed"}


async def test_looks_of_one_instant_come_in_pages_each_of_them_once(
    database: Database, index: PostgresDueIndex
) -> None:
    earlier = put_looks(database, 2)
    together = put_looks(database, 25)
    at = NOW + timedelta(hours=1)
    database.query(
        database.sql("UPDATE :schema.next_runs SET due_at = %s WHERE id = ANY (%s) RETURNING id"),
        (at, together),
    )
    found: list[UUID] = []
    after = (BEGINNING, FIRST)
    while len(found) < 27:
        [page] = await index.looks([Range(5, *after, ALWAYS)], 10)
        assert 0 < len(page) <= 10
        found += [look.id for look in page]
        after = (page[-1].due_us, page[-1].id)
    assert await index.looks([Range(5, *after, ALWAYS)], 10) == [[]]
    assert found == [*earlier, *sorted(together)]


async def test_a_window_is_extended_only_while_the_claim_stands(
    database: Database, index: PostgresDueIndex
) -> None:
    [claimed] = put_looks(database, 1)
    [running] = put_looks(database, 1, state="running")
    await index.extend(
        [Extension(claimed, 1, 500.0), Extension(running, 1, 500.0), Extension(uuid4(), 1, 1.0)]
    )
    await index.extend([Extension(claimed, 2, 9_000.0)])
    rows = database.query(
        database.sql("SELECT id, extract(epoch FROM due_at - now())::float8 FROM :schema.next_runs")
    )
    after = dict(rows)
    assert 400 < after[claimed] < 501
    assert after[running] < 10


@pytest.mark.parametrize(
    ("function", "name"), [("fires_due", "next_runs_fires"), ("looks_due", "next_runs_look_times")]
)
async def test_both_reads_use_their_index_before_and_after_statistics(
    database: Database, function: str, name: str
) -> None:
    database.query(
        database.sql(
            "INSERT INTO :schema.next_runs SELECT now() + n * interval '1 s', now(), n,"
            " gen_random_uuid(), gen_random_uuid(), 1, 1, 0, 0, n % 64, n % 2 = 0, 'claimed',"
            " 'schedule' FROM generate_series(1, 20000) n"
        )
    )
    call = database.sql(f"SELECT * FROM :schema.{function}(%b, %b, %b, %b, 10)")
    spans = (
        SmallInts([0, 1]),
        Instants([NOW, NOW]),
        Uuids([FIRST, FIRST]),
        Instants([NOW + timedelta(days=1)] * 2),
    )
    with database.session() as connection:
        connection.execute("LOAD 'auto_explain'")
        connection.execute("SET auto_explain.log_min_duration = 0")
        connection.execute("SET auto_explain.log_nested_statements = on")
        connection.execute("SET client_min_messages = log")
        plans: list[str] = []
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
        for _ in range(2):
            connection.execute(call, spans)
            connection.execute(database.sql("ANALYZE :schema.next_runs"))
    nested = [plan for plan in plans if "unnest" in plan]
    assert len(nested) >= 2
    for plan in nested:
        assert name in plan
        assert "Seq Scan" not in plan


async def test_known_occurrences_are_those_with_events(
    database: Database, index: PostgresDueIndex
) -> None:
    there, not_there = uuid4(), uuid4()
    database.query(
        database.sql("INSERT INTO :schema.occurrence_events VALUES (1, now(), %s, 1, 'x', %s)"),
        (there, json.dumps({}).encode()),
    )
    assert await index.known([there, not_there]) == {there}


async def test_what_comes_due_soon_is_told_at_once_and_later_things_are_not(
    database: Database,
) -> None:
    ear, stop = Ear(), asyncio.Event()
    listening = asyncio.create_task(PostgresDueNews(database).hear(ear.hear, ear.connected, stop))
    await ear.until(begun=1)
    soon, late = NOW + timedelta(seconds=20), NOW + timedelta(hours=2)
    near = registration(soon, 7)
    PostgresLog(database).append([near, registration(late, 7)])
    await ear.until(heard=1)
    assert ear.heard == [Entry(microseconds(soon), near.guard.id, 7)]
    many = [registration(soon + timedelta(seconds=n % 5), n % 3) for n in range(600)]
    PostgresLog(database).append(many)
    await ear.until(heard=4)
    assert sorted(ear.heard[1:], key=str) == [Reread(n, microseconds(soon)) for n in range(3)]
    stop.set()
    await listening


async def test_a_listener_whose_connection_was_cut_begins_anew_and_says_so(
    database: Database,
) -> None:
    ear, stop = Ear(), asyncio.Event()
    listening = asyncio.create_task(PostgresDueNews(database).hear(ear.hear, ear.connected, stop))
    await ear.until(begun=1)
    database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"  # pyright: ignore[reportArgumentType]
        " AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%%'",
        (f"horolog/{database.namespace}",),
    )
    await ear.until(begun=2)
    PostgresLog(database).append([registration(NOW + timedelta(seconds=20), 1)])
    await ear.until(heard=1)
    stop.set()
    await listening


def test_lines_that_cannot_be_read_say_nothing() -> None:
    assert list(read_news("")) == []
    assert list(read_news("1 2\nx y z\n3 4 not-a-uuid\n5 6 *")) == [Reread(5, 6)]


def test_numbers_that_are_none_and_names_without_end_say_nothing_either() -> None:
    run = UUID(int=1)
    lines = [
        f"0 {10**30} {run}", f"0 -{10**30} *", f"{10**9} 5 *", "-1 5 *", f"inbox {10**9}",
        "inbox -1", "lane " + "[" * 7_000, "lane {", "7 8 *",
    ]  # fmt: skip
    assert list(read_news("\n".join(lines))) == [Reread(7, 8)]
