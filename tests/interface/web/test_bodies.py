"""The document says no to nothing that is taken: what a program may send is what it was told."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ValidationError

from horolog.domain.errors import HorologError, InvalidSchedule
from horolog.interface.job_file import read_schedule
from horolog.interface.web.api import bodies

SCHEDULES: dict[str, dict[str, Any]] = {
    "cron": {"cron": "0 2 * * *", "zone": "UTC"},
    "every": {"every": 5},
    "at": {"at": "2027-03-01T08:00:00Z"},
    "rrule": {"rrule": "FREQ=DAILY", "zone": "UTC"},
}
EVERY = {"schedule": SCHEDULES["every"]}
BODIES: dict[type[BaseModel], dict[str, Any]] = {
    bodies.JobBody: {"name": "a", **EVERY},
    bodies.DeclaredJob: {"name": "a", "key": "k", **EVERY},
    bodies.ChangeBody: {},
    bodies.RetryForm: {},
    bodies.ReasonBody: {},
    bodies.ResumeBody: {},
    bodies.ScheduleBody: EVERY,
    bodies.TriggerBody: {},
    bodies.BackfillBody: {"start": "2027-03-01T08:00:00Z", "end": "2027-03-02T08:00:00Z"},
    bodies.ForgetBody: {"subject": "s"},
    bodies.CompareBody: EVERY,
    bodies.PreviewBody: EVERY,
    bodies.ManyBody: {"jobs": [{"name": "a", **EVERY}]},
    bodies.ApplyBody: {"jobs": []},
    bodies.ReplayBody: {},
    bodies.QueueBody: {},
}
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.0, 2.5, 1e300, 10**30, "", "x", "0", "1", "true",
    "2027-03-01T08:00:00Z", "2027-03-01", [], [1], ["x"], [None], {}, {"x": 1}, "x" * 3000,
    {"name": "n", "version": "1", "dates": [0]},
]  # fmt: skip


def strange(described: dict[str, Any], honest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in (*described["properties"], "unheard", "seconds", "expression"):
        for value in ODD:
            yield honest | {name: value}


def is_taken(body: type[BaseModel], given: dict[str, Any]) -> bool:
    try:
        made: Any = body.model_validate_json(json.dumps(given))
        if "schedule" in body.model_fields:
            read_schedule(made.schedule)
    except (ValidationError, HorologError):
        return False
    return True


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_what_the_document_refuses_is_refused(body: type[BaseModel]) -> None:
    described = body.model_json_schema()
    document = jsonschema_rs.validator_for(described)
    assert document.is_valid(BODIES[body])
    assert is_taken(body, BODIES[body])
    for given in strange(described, BODIES[body]):
        assert document.is_valid(given) or not is_taken(body, given), given


@pytest.mark.parametrize("told_by", SCHEDULES)
def test_so_is_a_schedule_field_by_field(told_by: str) -> None:
    described = bodies.PreviewBody.model_json_schema()
    document = jsonschema_rs.validator_for(described)
    (form,) = (
        form
        for form in described["properties"]["schedule"]["anyOf"]
        if told_by in form["properties"]
    )
    assert is_taken(bodies.PreviewBody, {"schedule": SCHEDULES[told_by]})
    for given in strange(form, SCHEDULES[told_by]):
        body = {"schedule": given}
        assert document.is_valid(body) or not is_taken(bodies.PreviewBody, body), given


def test_so_are_days_off() -> None:
    document = jsonschema_rs.validator_for(bodies.PreviewBody.model_json_schema())
    off: dict[str, Any] = {"name": "de", "version": "2027", "dates": ["2027-12-25"]}
    for name in (*off, "weekdays_off", "unheard"):
        for value in (*ODD, ["2027-12-25"] * 5000, ["sun", 1], list("abc")):
            body = {"schedule": {**SCHEDULES["cron"], "holidays": off | {name: value}}}
            assert document.is_valid(body) or not is_taken(bodies.PreviewBody, body), body
    often = {"schedule": {**SCHEDULES["cron"], "exclude": ["2027-12-25"] * 1001}}
    assert not document.is_valid(often)
    assert not is_taken(bodies.PreviewBody, often)


def test_days_off_and_local_hours_are_described_and_taken() -> None:
    off = {"name": "de", "version": "2027", "dates": ["2027-12-25"], "weekdays_off": ["sun"]}
    document = jsonschema_rs.validator_for(bodies.PreviewBody.model_json_schema())
    for schedule in (
        {"cron": "0 9 * * *", "zone": "Europe/Berlin", "holidays": off, "roll": "next"},
        {"every": 86400, "zone": "Europe/Berlin", "keep_local_hour": True},
        {"rrule": "FREQ=DAILY", "zone": "UTC", "anchor": "2027-03-01T08:00:00Z"},
    ):
        body = {"schedule": schedule}
        assert document.is_valid(body)
        assert is_taken(bodies.PreviewBody, body)


def test_one_interval_is_not_told_by_two_names() -> None:
    with pytest.raises(InvalidSchedule, match="every and seconds are the same"):
        read_schedule({"every": 5, "seconds": 1})
