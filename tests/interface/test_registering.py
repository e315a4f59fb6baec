"""Registering jobs, once and again, one and many, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from horolog import (
    Calendar,
    Cron,
    Every,
    HorologError,
    InvalidPayload,
    InvalidPolicy,
    InvalidSchedule,
    Job,
    JobSpec,
    KeyConflict,
    NotAllowed,
    Once,
    Ref,
    Retry,
    Scheduler,
    Union,
    VersionConflict,
)

if TYPE_CHECKING:
    from tests.interface.conftest import Stage

    from horolog.infrastructure.postgres.database import Database

SOON = datetime(2100, 1, 1, tzinfo=UTC)


def test_a_job_is_what_was_registered(scheduler: Scheduler) -> None:
    job = scheduler.register(
        "invoices.bill",
        schedule=Cron("0 2 * * *", zone="America/New_York"),
        payload={"card": Ref("cards/42"), "amount": 10, "lines": ({"n": 1},)},
        key="bill-42",
        queue="billing",
        priority=5,
        retry=Retry(max_attempts=7),
        timeout=30.0,
        overlap="skip",
        catch_up="all",
        catch_up_window=60.0,
        concurrency_key="card-42",
        concurrency_limit=1,
        owner="team-billing",
        labels={"region": "us"},
        reason="a new customer",
    )
    assert job == scheduler.job(job.id) == scheduler.job("bill-42") == scheduler.job(str(job.id))
    assert (job.name, job.key, job.status, job.version) == (
        "invoices.bill",
        "bill-42",
        "active",
        1,
    )
    assert job.payload == {"card": {"$ref": "cards/42"}, "amount": 10, "lines": [{"n": 1}]}
    assert job.schedule == Cron("0 2 * * *", zone="America/New_York")
    assert job.retry.max_attempts == 7
    assert job.labels == {"region": "us"}
    assert job.next_run is not None
    assert job.next_run > datetime.now(UTC)

    (registered,) = scheduler.history(job.id)
    assert (registered.topic, registered.actor) == ("job.registered.1", "ann")
    assert registered.reason == "a new customer"
    assert job.to_dict()["next_run"] == job.next_run.isoformat()


def test_the_same_key_and_definition_is_the_same_job(scheduler: Scheduler, stage: Stage) -> None:
    schedules = [
        Every(30),
        Cron("H H * * *", zone="Europe/Berlin"),
        Calendar("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9", zone="Europe/Berlin"),
        Union([Every(30), Every(45)]),
        Once(SOON),
    ]
    for number, schedule in enumerate(schedules):
        first = scheduler.register("a", schedule=schedule, key=str(number), payload={"n": (1, 2)})
        before = stage.events()
        again = scheduler.register("a", schedule=schedule, key=str(number), payload={"n": [1, 2]})
        assert again == first
        assert stage.events() == before


def test_a_key_with_another_definition_names_what_differs(
    scheduler: Scheduler, stage: Stage
) -> None:
    scheduler.register("a", schedule=Every(30), key="k")
    before = stage.events()
    with pytest.raises(KeyConflict, match=r"'k' .* differs in schedule, queue: give replace=True"):
        scheduler.register("a", schedule=Every(31), key="k", queue="other")
    assert stage.events() == before


def test_replace_changes_the_job_where_it_differs(scheduler: Scheduler) -> None:
    first = scheduler.register("a", schedule=Every(30), key="k", payload={"n": 1}, owner="x")
    second = scheduler.register(
        "a", schedule=Every(31), key="k", payload={"n": 2}, priority=3, replace=True, reason="new"
    )
    assert second.id == first.id
    assert isinstance(second.schedule, Every)
    assert (second.schedule.seconds, second.payload, second.priority) == (31, {"n": 2}, 3)
    assert second.owner is None
    topics = [event.topic for event in scheduler.history(first.id)]
    assert topics == [
        "job.registered.1",
        "job.rescheduled.1",
        "job.payload_changed.1",
        "job.policies_changed.1",
    ]
    again = scheduler.register(
        "a", schedule=Every(31), key="k", payload={"n": 2}, priority=3, replace=True
    )
    assert again == second == scheduler.job("k")


def test_replace_keeps_the_rhythm_of_an_interval_that_did_not_change(scheduler: Scheduler) -> None:
    first = scheduler.register("a", schedule=Every(3600), key="k")
    second = scheduler.register("a", schedule=Every(3600), key="k", priority=1, replace=True)
    assert second.schedule == first.schedule
    assert second.next_run == first.next_run


def test_what_a_key_cannot_replace_is_said(scheduler: Scheduler) -> None:
    scheduler.register("a", schedule=Every(30), key="k", concurrency_key="c")
    with pytest.raises(KeyConflict, match="its concurrency_key, name cannot be replaced"):
        scheduler.register("b", schedule=Every(30), key="k", replace=True)
    job = scheduler.cancel(scheduler.job("k").id)
    assert scheduler.register("a", schedule=Every(30), key="k", concurrency_key="c") == job
    with pytest.raises(NotAllowed, match="it is cancelled"):
        scheduler.register("a", schedule=Every(5), key="k", concurrency_key="c", replace=True)


def test_twenty_who_register_one_key_at_once_get_one_job(
    scheduler: Scheduler, database: Database
) -> None:
    def register(_: int) -> Job:
        return scheduler.register("a", schedule=Every(30), key="k")

    with ThreadPoolExecutor(20) as threads:
        jobs = list(threads.map(register, range(20)))
    assert len({job.id for job in jobs}) == 1
    assert len(scheduler.history(jobs[0].id)) == 1
    assert len(scheduler.jobs()) == 1


def test_jobs_without_a_key_are_never_the_same(scheduler: Scheduler) -> None:
    jobs = [scheduler.register("a", schedule=Cron("* * * * *", zone="UTC")) for _ in range(10)]
    assert len({job.id for job in jobs}) == 10
    assert len({job.partition for job in jobs}) > 1


def test_jobs_of_one_concurrency_key_share_a_partition(scheduler: Scheduler) -> None:
    jobs = [scheduler.register("a", schedule=Every(60), concurrency_key="c") for _ in range(10)]
    assert len({job.partition for job in jobs}) == 1


REFUSED: list[tuple[type[HorologError], dict[str, Any], str]] = [
    (InvalidPolicy, {"name": "no spaces"}, r"name='no spaces'"),
    (InvalidPolicy, {"name": ""}, r"name=''"),
    (InvalidPolicy, {"queue": "a b"}, r"queue='a b'"),
    (InvalidPolicy, {"priority": 1000}, r"priority=1000: .*100"),
    (InvalidPolicy, {"timeout": -1}, r"timeout=-1: .*greater than 0"),
    (InvalidPolicy, {"overlap": "maybe"}, r"overlap='maybe': .*'allow'"),
    (InvalidPolicy, {"catch_up": "some"}, r"catch_up='some'"),
    (InvalidPolicy, {"concurrency_limit": 0}, r"concurrency_limit=0"),
    (InvalidPolicy, {"labels": {"a": 1}}, r"labels\['a'\]=1"),
    (InvalidPolicy, {"labels": ["a"]}, r"labels=\['a'\]: labels are a mapping"),
    (InvalidPolicy, {"labels": {str(n): "" for n in range(65)}}, r"labels: 65 are given"),
    (InvalidPolicy, {"owner": "a\x00"}, r"owner='a\\x00' holds NUL"),
    (InvalidPolicy, {"concurrency_key": "\ud800"}, r"concurrency_key="),
    (InvalidPolicy, {"key": ""}, r"key='': a key is text"),
    (InvalidPolicy, {"key": "x\x00"}, r"key='x\\x00'"),
    (InvalidPolicy, {"key": "x" * 600}, r"1 to 512 characters"),
    (InvalidPolicy, {"key": 7}, r"key=7"),
    (InvalidPayload, {"payload": {"when": SOON}}, r"payload\.when is a datetime"),
    (InvalidPayload, {"payload": {"a": [{"b": b"x"}]}}, r"payload\.a\[0\]\.b is a bytes"),
    (InvalidPayload, {"payload": {"a": float("nan")}}, r"payload\.a is nan"),
    (InvalidPayload, {"payload": {"a": "x\x00"}}, r"payload\.a holds NUL"),
    (InvalidPayload, {"payload": {"a": "\ud800"}}, r"payload\.a holds NUL or a lone surrogate"),
    (InvalidPayload, {"payload": {1: "x"}}, r"has the key 1"),
    (InvalidPayload, {"payload": [1]}, r"a mapping"),
    (InvalidPayload, {"payload": {"a": "é" * 70_000}}, r"140\d\d\d bytes as JSON"),
    (InvalidPayload, {"payload": {"a": 10**5000}}, r"give such a number as text"),
    (InvalidSchedule, {"schedule": "0 2 * * *"}, r"schedule='0 2 \* \* \*' is a str: give Once"),
    (InvalidSchedule, {"schedule": None}, r"is a NoneType"),
    (InvalidSchedule, {"schedule": Once(datetime(2020, 1, 1, tzinfo=UTC))}, r"no fire time"),
]


def test_what_is_refused_says_what_and_why_and_leaves_no_event(
    scheduler: Scheduler, stage: Stage
) -> None:
    for error, given, message in REFUSED:
        stated: dict[str, Any] = {"name": "a", "schedule": Every(30)} | given
        with pytest.raises(error, match=message):
            scheduler.register(**stated)
        with pytest.raises(error, match=f"spec 0: .*{message}"):
            list(scheduler.register_many([JobSpec(**stated)]))
    assert stage.events() == 0


def test_a_retry_that_makes_no_sense_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidPolicy, match=r"retry\.max_attempts=0: .*greater than or equal to 1"):
        Retry(max_attempts=0)
    with pytest.raises(InvalidPolicy, match=r"retry\.jitter=nan"):
        Retry(jitter=float("nan"))


def test_a_one_off_of_a_moment_ago_still_runs(scheduler: Scheduler, stage: Stage) -> None:
    at = stage.now() - timedelta(seconds=5)
    assert scheduler.register("a", schedule=Once(at)).next_run == at


def test_times_are_judged_by_the_clock_of_the_database(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(1999, 1, 1, tzinfo=tz)

    monkeypatch.setattr("horolog.infrastructure.postgres.clock.datetime", Wrong)
    job = scheduler.register("a", schedule=Every(30))
    assert job.next_run is not None
    assert job.next_run.year >= 2026


def test_many_come_back_in_order_and_in_batches(scheduler: Scheduler, stage: Stage) -> None:
    asked: list[int] = []

    def specs() -> Iterator[JobSpec]:
        for number in range(25):
            asked.append(number)
            yield JobSpec(
                f"job-{number}", schedule=Every(60), key=str(number) if number % 2 else None
            )

    jobs = scheduler.register_many(specs(), batch=10)
    assert next(jobs).name == "job-0"
    assert len(asked) == 10
    assert stage.events() == 10
    assert [job.name for job in jobs] == [f"job-{number}" for number in range(1, 25)]
    assert [job.name for job in scheduler.register_many(specs(), batch=25)][-1] == "job-24"
    assert len(scheduler.jobs(limit=100)) == 25 + 13


def test_a_bad_spec_is_named_and_its_batch_is_not_written(
    scheduler: Scheduler, stage: Stage
) -> None:
    specs = [JobSpec("a", schedule=Every(60)) for _ in range(14)]
    specs.append(JobSpec("a", schedule=Every(60), priority=101))
    found: list[Job] = []
    with pytest.raises(InvalidPolicy, match="spec 14: priority=101"):
        found += scheduler.register_many(iter(specs), batch=5)
    assert stage.events() == 10

    with pytest.raises(InvalidPolicy, match="batch=0"):
        list(scheduler.register_many(specs, batch=0))


def test_a_key_that_comes_twice_in_a_batch_is_one_job(scheduler: Scheduler) -> None:
    same = JobSpec("a", schedule=Every(60), key="k")
    jobs = list(scheduler.register_many([same, same, same]))
    assert len({job.id for job in jobs}) == 1
    assert len(scheduler.history("k")) == 1

    other = JobSpec("a", schedule=Every(61), key="k")
    with pytest.raises(KeyConflict, match="spec 1: key 'k'"):
        list(scheduler.register_many([same, other]))
    changed = JobSpec("a", schedule=Every(61), key="k", replace=True)
    *_, last = scheduler.register_many([same, changed])
    assert last.version == 2


def test_many_at_once_from_several_clients_meet_in_one_set_of_jobs(scheduler: Scheduler) -> None:
    specs = [JobSpec("a", schedule=Every(60), key=str(number)) for number in range(200)]

    def register(_: int) -> set[str]:
        return {str(job.id) for job in scheduler.register_many(specs, batch=50)}

    with ThreadPoolExecutor(4) as threads:
        sets = list(threads.map(register, range(4)))
    assert all(found == sets[0] for found in sets)
    assert len(scheduler.jobs(limit=1000)) == 200
    assert len(scheduler.log(limit=1000)) == 200


def test_a_conflict_of_versions_carries_both(scheduler: Scheduler) -> None:
    job = scheduler.register("a", schedule=Every(60))
    scheduler.pause(job.id)
    with pytest.raises(VersionConflict, match="is at version 2, not at 1") as conflict:
        scheduler.resume(job.id, expected_version=job.version)
    assert (conflict.value.seen, conflict.value.current) == (1, 2)
