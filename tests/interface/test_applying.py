"""A declared set of jobs is made true once, and then nothing is left to do."""

from __future__ import annotations

import json
from collections.abc import Generator
from datetime import UTC, date, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from horolog import (
    Cron,
    Every,
    HorologError,
    InvalidPayload,
    InvalidPolicy,
    InvalidSchedule,
    JobSpec,
    KeyConflict,
    NotAllowed,
    Once,
    Retry,
    Schedule,
    Scheduler,
)
from horolog.interface.job_file import read_job_file
from horolog.testing import SimulatedScheduler

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTELY = Every(60)
NIGHTLY = Cron("0 2 * * *", "America/New_York")


def spec(key: str | None = "a", schedule: Schedule = MINUTELY, **fields: Any) -> JobSpec:
    return JobSpec("report", key=key, schedule=schedule, **fields)


@pytest.fixture
def simulated() -> Generator[SimulatedScheduler]:
    with SimulatedScheduler(start=START) as scheduler:
        yield scheduler


@pytest.fixture(params=["simulated", "postgres"])
def either(request: pytest.FixtureRequest) -> Scheduler:
    """Both implementations of what applying calls."""
    return request.getfixturevalue("simulated" if request.param == "simulated" else "scheduler")


def test_what_is_missing_is_created_and_a_second_time_nothing_happens(either: Scheduler) -> None:
    declared = [spec("a"), spec("b", schedule=NIGHTLY, payload={"n": 1}), spec("c")]
    first = either.apply(declared, reason="go live")
    assert (first.created, first.changed, first.unchanged) == (("a", "b", "c"), (), ())
    assert {e.reason for e in either.log()} == {"go live"}
    before = either.position()
    second = either.apply(declared)
    assert second.empty
    assert second.unchanged == ("a", "b", "c")
    assert either.position() == before


def test_what_differs_is_changed_and_shown_field_by_field(either: Scheduler) -> None:
    either.apply([spec("a", payload={"n": 1}), spec("b")])
    declared = [
        spec("a", payload={"n": 2}, schedule=NIGHTLY, retry=Retry(max_attempts=9)),
        spec("b"),
        spec("c"),
    ]
    expected = either.apply(declared, dry_run=True)
    before = either.position()
    difference = either.apply(declared)
    assert difference == expected
    assert before < either.position()
    (change,) = difference.changed
    assert (difference.created, change.key, difference.unchanged) == (("c",), "a", ("b",))
    assert change.job_id == either.job("a").id
    assert set(change.fields) == {"payload", "schedule", "retry"}
    assert (change.fields["payload"].old, change.fields["payload"].new) == ({"n": 1}, {"n": 2})
    assert change.fields["schedule"].new == NIGHTLY.to_json()
    assert change.fields["retry"].new["max_attempts"] == 9
    assert either.job("a").payload == {"n": 2}
    assert either.job("a").schedule == NIGHTLY
    assert either.apply(declared).empty
    json.dumps(difference.to_dict())


def test_a_dry_run_writes_nothing(either: Scheduler) -> None:
    either.apply([spec("a")])
    before = either.position()
    difference = either.apply([spec("b")], prune=True, dry_run=True)
    assert (difference.created, difference.pruned) == (("b",), ("a",))
    assert either.position() == before


def test_what_is_not_named_is_left_alone_unless_it_is_pruned(either: Scheduler) -> None:
    unkeyed = either.register("report", schedule=Every(60))
    either.apply([spec("a"), spec("b"), spec("c", labels={"team": "x"})])
    either.pause(either.job("b").id)
    assert either.apply([spec("a")]).empty
    difference = either.apply([spec("a")], prune=True, within="team=x")
    assert difference.pruned == ("c",)
    difference = either.apply([spec("a")], prune=True, reason="moved")
    assert difference.pruned == ("b",)
    assert either.history("b")[-1].reason == "moved"
    assert [either.job(key).status for key in ("a", "b", "c")] == [
        "active", "cancelled", "cancelled",
    ]  # fmt: skip
    assert either.job(unkeyed.id).status == "active"
    assert either.apply([spec("a")], prune=True).empty


def test_a_paused_or_completed_job_stays_as_it_is(simulated: SimulatedScheduler) -> None:
    declared = [spec("a"), spec("b", schedule=Once(START + timedelta(minutes=1)))]
    simulated.apply(declared)
    simulated.pause(simulated.job("a").id)
    simulated.advance(hours=1)
    assert simulated.apply(declared).empty
    assert [simulated.job(key).status for key in "ab"] == ["paused", "completed"]


@pytest.mark.parametrize(
    ("declared", "error", "said"),
    [
        ([spec("a"), spec(None)], InvalidPolicy, "spec 1: it has no key"),
        ([spec("a"), spec("b"), spec("a")], InvalidPolicy, "spec 2: spec 0 has the key 'a' too"),
        ([spec("new"), spec("old", concurrency_key="k")], KeyConflict, "spec 1: .*concurrency_key"),
        ([spec("new"), spec("gone")], NotAllowed, "spec 1: .*does not come back"),
        ([spec("new"), spec("bad", schedule=Once(START))], InvalidSchedule, "spec 1: "),
        ([spec("new"), spec("bad", payload={"n": {1}})], InvalidPayload, "spec 1: "),
        ([spec("new"), spec("bad", timeout=-1.0)], InvalidPolicy, "spec 1: timeout=-1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    simulated: SimulatedScheduler, declared: list[JobSpec], error: type[HorologError], said: str
) -> None:
    simulated.apply([spec("old"), spec("gone")])
    simulated.cancel(simulated.job("gone").id)
    simulated.advance(minutes=5)
    before = simulated.position()
    with pytest.raises(error, match=said):
        simulated.apply(declared)
    assert simulated.position() == before
    with pytest.raises(InvalidPolicy, match="give both"):
        simulated.apply([], within="team=x")


TOML = """
[defaults]
queue = "billing"
owner = "ann"

[[jobs]]
key = "bill"
name = "invoices.bill"
schedule = {cron = "0 2 * * *", zone = "America/New_York", exclude = [2027-12-24]}
payload = {card = {"$ref" = "cards/42"}, since = 2027-01-01, amount = 10}
retry = {max_attempts = 3}

[[jobs]]
key = "beat"
name = "beat"
queue = "fast"
schedule = {every = 30, jitter = 5}

[[jobs]]
key = "once"
name = "party"
schedule = {at = 2027-12-31T23:00:00, zone = "Europe/Berlin"}
"""


def test_a_file_declares_jobs(tmp_path: Path, simulated: SimulatedScheduler) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(TOML)
    bill, beat, once = read_job_file(file)
    assert bill.schedule == Cron("0 2 * * *", "America/New_York", exclude=[date(2027, 12, 24)])
    assert bill.payload == {"card": {"$ref": "cards/42"}, "since": "2027-01-01", "amount": 10}
    assert (bill.queue, bill.owner, bill.retry) == ("billing", "ann", Retry(max_attempts=3))
    assert (beat.queue, beat.schedule) == ("fast", Every(30, jitter=5))
    assert once.schedule == Once(datetime(2027, 12, 31, 23), "Europe/Berlin")  # noqa: DTZ001
    simulated.apply([bill, beat, once])
    assert simulated.apply(read_job_file(file)).empty


def test_json_declares_the_same(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    jobs = [{"key": "a", "name": "report", "schedule": NIGHTLY.to_json()}]
    file.write_text(json.dumps(jobs))
    assert [s.schedule for s in read_job_file(file)] == [NIGHTLY]
    file.write_text(json.dumps({"jobs": jobs, "defaults": {"priority": 3}}))
    assert [s.priority for s in read_job_file(file)] == [3]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("jobs.toml", "[[jobs]]\nkey =", "cannot be read"),
        ("jobs.json", "{", "cannot be read"),
        ("jobs.ini", "", "ends with .toml, .json or .yaml"),
        ("jobs.toml", "jobs = 3", "`jobs` is no list"),
        ("jobs.toml", "job = []", "'job' is neither"),
        ("jobs.json", "[3]", "job 1: 3 is no table"),
        ("jobs.json", '[{"key": "a", "name": "b"}]', r"job 1 \(a\): it has no schedule"),
        ("jobs.json", '[{"name": "b", "schedul": 1}]', "did you mean schedule"),
        ("jobs.json", '[{"name": 7, "schedule": {"every": 3}}]', "a handler's name is text"),
        ("jobs.json", '[{"name": "b", "schedule": "0 2 * * *"}]', "write a table such as"),
        ("jobs.json", '[{"name": "b", "schedule": {}}]', "one of cron, every, at, rrule"),
        ("jobs.json", '[{"name": "b", "schedule": {"every": 1, "at": "x"}}]', "every and at"),
        ("jobs.json", '[{"name": "b", "schedule": {"every": -1}}]', "Every, seconds"),
        ("jobs.json", '[{"name": "b", "schedule": {"every": 1}, "payload": 1}]', "is a table"),
        ("jobs.json", '[{"name":"b","schedule":{"every":1},"retry":{"base":-1}}]', "retry.base"),
    ],
)
def test_a_file_that_does_not_hold_jobs_is_refused(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(HorologError, match=said) as refusal:
        read_job_file(file)
    assert str(refusal.value).startswith(str(file))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        read_job_file(tmp_path / "jobs.toml")


def test_yaml_is_read_where_its_library_is(tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text("jobs:\n- {key: a, name: report, schedule: {every: 30}}\n")
    if find_spec("yaml") is None:
        with pytest.raises(InvalidPolicy, match="needs PyYAML"):
            read_job_file(file)
    else:
        assert [s.schedule for s in read_job_file(file)] == [Every(30)]
