"""Several logs: two databases that are one namespace, each a whole log of its own."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from horolog import (
    Every,
    InvalidSetting,
    JobSpec,
    KeyConflict,
    NotAllowed,
    Once,
    Run,
    Scheduler,
    Settings,
    StoreUnavailable,
    UnknownJob,
    UnknownOccurrence,
    Worker,
)
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.several_logs.place import log_of_job
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.interface.cli.main import run
from horolog.interface.processes import each_log
from horolog.interface.processes.each_log import serve_each_log
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.worker import run_worker
from horolog.interface.several_logs import migrate_all
from horolog.interface.verification import verify_log

PARTITIONS = 4


@pytest.fixture(scope="module")
def two(servers: EmbeddedServers) -> Generator[Settings]:
    """A namespace of two logs, in two databases of the shared server."""
    found = servers.find()
    assert found is not None
    names = [f"log_{number}_{secrets.token_hex(4)}" for number in range(2)]
    with psycopg.connect(found.database_url, autocommit=True) as connection:
        for name in names:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        urls = [conninfo_to_dict(found.database_url) for _ in names]
        stated = " ".join(_url(dict(url), name) for url, name in zip(urls, names, strict=True))
        settings = Settings.read(
            stated, nats_url=found.nats_url, namespace=f"t_{secrets.token_hex(4)}", environment={}
        )
        migrate_all(settings, partitions=PARTITIONS)
        yield settings
        for name in names:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _url(parts: dict[str, Any], name: str) -> str:
    options = "&".join(f"{key}={value}" for key, value in parts.items() if key != "dbname")
    return f"postgresql:///{name}?{options}"


@pytest.fixture
def scheduler(two: Settings) -> Generator[Scheduler]:
    with Scheduler(settings=two) as scheduler:
        yield scheduler


def one(settings: Settings, log: int) -> Scheduler:
    return Scheduler(settings=replace(settings, log=log))


def in_log(settings: Settings, log: int, *, keyed: bool = False) -> dict[str, Any]:
    """A concurrency key, or a key, whose jobs are in this log."""
    from horolog.domain.ids import keyed_job_id

    while True:
        drawn = secrets.token_hex(4)
        identity = keyed_job_id(settings.namespace, drawn)
        home = log_of_job(identity, None if keyed else drawn, PARTITIONS, 2)
        if home == log:
            return {"key" if keyed else "concurrency_key": drawn}


@asynccontextmanager
async def serving(settings: Settings, worker: Worker) -> AsyncGenerator[None]:
    """A scanner and a worker, each for both logs."""
    stop = asyncio.Event()

    async def scan(one: Settings, ending: asyncio.Event) -> None:
        await run_scanner(
            one.database_url(), one.nats_url(), one.namespace,
            ScannerSettings(settle_s=0.1), ending, place=one.place,
        )  # fmt: skip

    async def work(one: Settings, ending: asyncio.Event) -> None:
        await run_worker(
            worker, database_url=one.database_url(), nats_url=one.nats_url(),
            namespace=one.namespace, stop=ending, place=one.place,
        )  # fmt: skip

    tasks = [
        asyncio.create_task(serve_each_log(settings, scan, stop)),
        asyncio.create_task(serve_each_log(settings, work, stop)),
    ]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def test_jobs_of_both_logs_run_exactly_once_and_one_that_is_away_stops_only_its_own(
    two: Settings,
) -> None:
    ran: Counter[str] = Counter()
    worker = Worker()

    @worker.handles("count")
    async def count(_: Run, name: str) -> None:
        ran[name] += 1

    def register(scheduler: Scheduler, names: range, **more: Any) -> list[str]:
        due = Once(datetime.now(UTC) + timedelta(milliseconds=200))
        specs = [JobSpec("count", schedule=due, payload={"name": str(n)}, **more) for n in names]
        return [str(job.id) for job in scheduler.register_many(specs)]

    async def all_of(names: range) -> None:
        async with asyncio.timeout(30):
            while not all(str(n) in ran for n in names):  # noqa: ASYNC110 - a poll, in a test
                await asyncio.sleep(0.02)

    with Scheduler(settings=two) as scheduler:
        async with serving(two, worker):
            jobs = register(scheduler, range(200))
            await all_of(range(200))
            away = two.each_log()[1].database_url()
            with out_of_reach(two, away):
                alive = in_log(two, 0)
                register(scheduler, range(200, 220), **alive)
                await all_of(range(200, 220))
                with pytest.raises(StoreUnavailable):
                    await asyncio.to_thread(scheduler.jobs)
            register(scheduler, range(220, 240), **in_log(two, 1))
            await all_of(range(220, 240))
        assert set(ran.values()) == {1}
        assert len(ran) == 240
        [done] = scheduler.occurrences(job_id=jobs[0])
        assert (done.state, scheduler.occurrence(done.id).id) == ("succeeded", done.id)
        topics = [event.topic for event in scheduler.history(done.id)]
        assert topics == [
            "occurrence.claimed.1",
            "occurrence.attempted.1",
            "occurrence.succeeded.1",
        ]
        assert "succeeded" in str(scheduler.explain(done.id))
        listed: list[str] = []
        while page := scheduler.jobs(after=listed[-1] if listed else None, limit=37):
            listed += [str(job.id) for job in page]
        assert listed == sorted(set(listed))
        assert set(jobs) < set(listed)
    for log in range(2):
        report = verify_log(two.each_log()[log])
        assert report.violations == []
        with one(two, log) as alone:
            here = alone.jobs(limit=1000)
            assert sum(str(job.id) in set(jobs) for job in here) > 50
            runs = [run for run in alone.occurrences(limit=1000) if run.kind == "schedule"]
            assert {run.state for run in runs} == {"succeeded"}


@contextmanager
def out_of_reach(settings: Settings, url: str) -> Generator[None]:
    """A database whose connections are cut, and which takes no new ones meanwhile."""
    name = str(conninfo_to_dict(url)["dbname"])
    other = settings.each_log()[0].database_url()
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())


async def test_a_log_that_is_away_at_the_start_is_tried_again_while_the_others_are_served(
    two: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(each_log, "AGAIN_S", 0.01)
    tried: Counter[int] = Counter()
    stop = asyncio.Event()

    async def loop(one: Settings, ending: asyncio.Event) -> None:
        log = one.place.log
        tried[log] += 1
        if log == 1 and tried[log] < 4:
            raise StoreUnavailable("away")
        if log == 1:
            stop.set()
        await ending.wait()

    await each_log.serve_each_log(two, loop, stop)
    assert tried == {0: 1, 1: 4}

    async def broken(one: Settings, ending: asyncio.Event) -> None:
        if one.place.log == 0:
            raise InvalidSetting("no such stream")
        await ending.wait()

    with pytest.raises(InvalidSetting, match="no such stream"):
        await each_log.serve_each_log(two, broken, asyncio.Event())


def test_a_job_is_found_changed_and_told_of_wherever_it_is(
    two: Settings, scheduler: Scheduler
) -> None:
    in_an_hour = Once(datetime.now(UTC) + timedelta(hours=1))
    for log in range(2):
        job = scheduler.register("report", schedule=Every(3600), **in_log(two, log))
        with one(two, log) as alone, one(two, 1 - log) as other:
            assert alone.job(job.id).id == job.id
            with pytest.raises(UnknownJob):
                other.job(job.id)
        with Scheduler(settings=two) as fresh:  # has to look for it
            paused = fresh.pause(job.id, reason="holidays")
            assert (paused.status, fresh.resume(job.id).status) == ("paused", "active")
            assert fresh.reschedule(job.id, in_an_hour).version == 4
            ordered = fresh.trigger(job.id, at=datetime.now(UTC) + timedelta(hours=2))
            assert fresh.occurrence(ordered.id).job_id == job.id
            assert fresh.cancel_occurrence(ordered.id).state == "skipped"
            assert fresh.cancel(job.id).status == "cancelled"
            assert fresh.changes(job.id)[1].reason == "holidays"
            assert [event.version for event in fresh.history(job.id)][:3] == [1, 2, 3]
    with pytest.raises(UnknownJob):
        scheduler.cancel("018f0000-0000-8000-8000-000000000000")
    with pytest.raises(UnknownOccurrence):
        scheduler.occurrence("018f0000-0000-8000-8000-000000000000")


def test_a_key_is_one_job_in_all_logs(two: Settings, scheduler: Scheduler) -> None:
    here, there = in_log(two, 0), in_log(two, 1)
    key = in_log(two, 0, keyed=True)
    first = scheduler.register("bill", schedule=Every(60), **key, **there)
    assert scheduler.register("bill", schedule=Every(60), **key, **there).id == first.id
    assert scheduler.job(key["key"]).id == first.id
    with pytest.raises(KeyConflict, match="concurrency_key"):
        scheduler.register("bill", schedule=Every(60), **key, **here)
    again = [JobSpec("bill", schedule=Every(60), **key, **there), JobSpec("b", schedule=Every(9))]
    assert next(iter(scheduler.register_many(again))).id == first.id
    # Jobs that share a concurrency key share a log: one lane counts them.
    with one(two, 1) as alone:
        second = scheduler.register("bill", schedule=Every(60), **there)
        assert {job.id for job in alone.jobs(name="bill", limit=100)} >= {first.id, second.id}
    spec = JobSpec("bill", schedule=Every(90), **key, **there)
    assert scheduler.apply([spec]).changed


def test_what_one_order_is_needed_for_is_asked_of_one_log(
    two: Settings, scheduler: Scheduler
) -> None:
    for ask in (
        scheduler.log, scheduler.position, scheduler.limited_queues, scheduler.alerts,
        lambda: scheduler.history(0), lambda: scheduler.forget("ann"), scheduler.executions,
        lambda: scheduler.due_next(datetime.now(UTC)), scheduler.zone_corrections,
        lambda: scheduler.register("x", schedule=Every(9), connection=object()),
        lambda: scheduler.register("x", schedule=Every(9), payload={"a": 1}, subject="ann"),
    ):  # fmt: skip
        with pytest.raises(NotAllowed, match=r"several logs|one log at a time"):
            ask()
    with pytest.raises(InvalidSetting, match="choose one with --log N"):
        two.database_url()
    with one(two, 1) as alone:
        here = alone.register("x", schedule=Every(86_400), **in_log(two, 1))
        assert [event.stream for event in alone.log(after=alone.position() - 1)] == [here.id]
        with pytest.raises(NotAllowed, match="belongs to log 0 of 2"):
            alone.register("x", schedule=Every(9), **in_log(two, 0))


def test_another_order_or_another_number_of_logs_is_refused(
    two: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (log.database_url() for log in two.each_log())
    for stated, message in (
        (f"{second} {first}", "log 0 of 2 is log 1 of 2"),
        (first, "log 0 of 1 is log 0 of 2"),
        (f"{first} {second} {first}&application_name=x", "log 0 of 3 is log 0 of 2"),
    ):
        wrong = replace(two, given_database_url=stated)
        with pytest.raises(InvalidSetting, match=message), Scheduler(settings=wrong):
            pass
        with pytest.raises(InvalidSetting, match=message):
            migrate_all(wrong)
    with pytest.raises(InvalidSetting, match="twice"):
        Settings.read(f"{first} {first}", environment={})
    with pytest.raises(InvalidSetting, match="from 0 to 1"):
        Settings.read(f"{first} {second}", log=2, environment={})
    place = ["--database-url", f"{first} {second}", "--namespace", two.namespace, "--json"]
    assert run(["verify", *place]) == 0
    assert [log["log"] for log in json.loads(capsys.readouterr().out)["logs"]] == [0, 1]
    assert run(["log", *place]) == 1
    assert "--log N" in capsys.readouterr().err
    assert run(["log", *place, "--log", "1", "--limit", "1"]) == 0
    assert run(["web", *place]) == 2
