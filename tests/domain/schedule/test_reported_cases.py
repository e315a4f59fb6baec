"""Cases taken from public bug reports, each with the fire times that are right.

``cases/time.json`` names the report, the situation and the expected instants. Where other readings
of a clock change are legitimate, they are listed with it, and have to be reachable by a choice.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Cron, Every, Once

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "cases" / "time.json").read_text(encoding="utf-8")
)
CHOICES: dict[str, dict[str, Any]] = {
    "skip-gap, first-pass (systemd 252)": {"gap": "skip", "stars": "fixed"},
    "every matching wall minute (Kubernetes, Temporal)": {"gap": "skip", "fold": "both"},
    "catch-up once (croniter)": {"stars": "fixed"},
    "literal POSIX OR (croniter)": {"day_rule": "or"},
}
NO_CHOICE = {
    "literal Debian: both nominal times run",  # one instant is one fire time, by design
    "seconds first (cronsim)",  # what six fields mean here, with no choice
    "seconds last (croniter)",  # never
}


def of(kind: str, *, refused: bool = False) -> list[Any]:
    return [
        pytest.param(case, id=f"{case['id']} {case['title']}")
        for case in CASES
        if case["kind"] == kind
        and (case.get("expect") == "reject" if refused else case["expected_utc"])
    ]


def instants(schedule: Cron | Every | Once, case: dict[str, Any], expected: list[str]) -> list[str]:
    fires = schedule.upcoming(datetime.fromisoformat(case["after_utc"]), len(expected))
    return [fire.at.strftime("%Y-%m-%dT%H:%M:%SZ") for fire in fires]


@pytest.mark.parametrize("case", of("cron"))
def test_fires_when_the_report_says_it_should(case: dict[str, Any]) -> None:
    schedule = Cron(case["expr"], case["tz"])
    assert instants(schedule, case, case["expected_utc"]) == case["expected_utc"]


@pytest.mark.parametrize("case", of("cron"))
def test_shows_the_local_times_of_the_report(case: dict[str, Any]) -> None:
    fires = Cron(case["expr"], case["tz"]).upcoming(
        datetime.fromisoformat(case["after_utc"]), len(case["expected_local"])
    )
    assert [fire.local.strftime("%a %Y-%m-%d %H:%M %z") for fire in fires] == case["expected_local"]


@pytest.mark.parametrize("case", of("cron"))
def test_walking_one_by_one_gives_what_a_cold_question_gives(case: dict[str, Any]) -> None:
    schedule = Cron(case["expr"], case["tz"])
    at, walked = datetime.fromisoformat(case["after_utc"]), list[str]()
    for _ in case["expected_utc"]:
        fire = schedule.next_after(at)
        assert fire is not None
        assert fire.at > at
        at = fire.at
        walked.append(at.strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert walked == case["expected_utc"]


@pytest.mark.parametrize(
    ("case", "reading"),
    [
        pytest.param(case, reading, id=f"{case['id']} {reading}")
        for case in CASES
        for reading in case.get("alt", {})
        if reading not in NO_CHOICE
    ],
)
def test_another_reading_can_be_chosen(case: dict[str, Any], reading: str) -> None:
    schedule = Cron(case["expr"], case["tz"], **CHOICES[reading])
    expected = case["alt"][reading]
    assert instants(schedule, case, expected) == expected


@pytest.mark.parametrize("case", of("cron", refused=True))
def test_refuses_what_must_be_refused(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Cron(case["expr"], case["tz"])
    wrong = case["tz"] if case["title"].startswith("zone names") else case["expr"]
    shown = [part for part in wrong.split() if part in str(refusal.value)]
    assert shown or not wrong.strip(), f"the message shows no part of {wrong!r}: {refusal.value}"


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("*/10 * * * * *", ["2027-01-01T00:00:10Z", "2027-01-01T00:00:20Z"]),
        ("0 30 9 * * 1", ["2027-01-04T09:30:00Z", "2027-01-11T09:30:00Z"]),
    ],
)
def test_six_fields_have_the_seconds_first(expression: str, first: list[str]) -> None:
    fires = Cron(expression, "UTC").upcoming(datetime(2027, 1, 1, tzinfo=UTC), 2)
    assert [fire.at.strftime("%Y-%m-%dT%H:%M:%SZ") for fire in fires] == first


def test_zone_names_are_taken_to_the_letter() -> None:
    with pytest.raises(InvalidSchedule, match="did you mean America/New_York"):
        Cron("0 9 * * *", "america/new_york")


@pytest.mark.parametrize("case", of("interval"))
def test_an_interval_is_elapsed_time(case: dict[str, Any]) -> None:
    spelled, anchor = case["expr"].split(" anchored ")
    unit = {"H": 3600, "M": 60}[spelled[-1]]
    schedule = Every(int(spelled[2:-1]) * unit, anchor=anchor, zone=case["tz"])
    assert instants(schedule, case, case["expected_utc"]) == case["expected_utc"]


def test_a_one_off_in_the_gap_takes_the_offset_before_it() -> None:
    case = next(case for case in CASES if case["id"] == "O1")
    schedule = Once(case["expr"], case["tz"])
    assert instants(schedule, case, case["expected_utc"]) == case["expected_utc"]


def test_a_delay_is_elapsed_time() -> None:
    case = next(case for case in CASES if case["id"] == "O3")
    now = datetime.fromisoformat(case["after_utc"])
    schedule = Once.in_seconds(timedelta(hours=2).total_seconds(), now)
    assert instants(schedule, case, case["expected_utc"]) == case["expected_utc"]


def test_a_one_off_in_the_past_has_no_fire_time_left() -> None:
    case = next(case for case in CASES if case["id"] == "O5")
    at = datetime.fromisoformat(case["expr"].split()[0])
    assert Once(at).next_after(datetime.fromisoformat(case["after_utc"])) is None
    assert Once(at).next_after(at - timedelta(microseconds=1)) is not None


def test_every_case_of_the_file_is_run() -> None:
    assert {case["kind"] for case in CASES} == {"cron", "once", "interval"}
    assert {case["id"] for case in CASES if case["kind"] == "once"} == {"O1", "O3", "O5"}
    readings = {reading for case in CASES for reading in case.get("alt", {})}
    assert readings == CHOICES.keys() | NO_CHOICE
