"""The stored form of a schedule: compact, stable, and read strictly."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import (
    Calendar,
    Cron,
    Every,
    HolidayCalendar,
    Once,
    Schedule,
    Union,
    schedule_from_json,
)

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)

# These forms are in the logs of users: they may gain keys, and may never change.
STORED: list[tuple[Schedule, dict[str, Any]]] = [
    (Once(NEW_YEAR), {"kind": "once", "at": "2027-01-01T00:00:00Z"}),
    (
        Once("2027-01-01T09:00:00", "Asia/Tokyo"),
        {"kind": "once", "at": "2027-01-01T09:00:00", "zone": "Asia/Tokyo"},
    ),
    (
        Every(90, NEW_YEAR),
        {"kind": "every", "seconds": 90.0, "anchor": "2027-01-01T00:00:00Z"},
    ),
    (
        Cron("0  2 * * *", "America/New_York"),
        {"kind": "cron", "expression": "0 2 * * *", "zone": "America/New_York"},
    ),
    (
        Cron(
            "H 2 * * mon",
            "UTC",
            "skip",
            "both",
            stars="fixed",
            day_rule="or",
            hash_key="k",
            start=NEW_YEAR,
            limit=3,
            jitter=1.5,
            exclude=["2027-02-01", "2027-02-08T02:00:00", NEW_YEAR],
        ),
        {
            "kind": "cron",
            "expression": "H 2 * * mon",
            "zone": "UTC",
            "gap": "skip",
            "fold": "both",
            "stars": "fixed",
            "day_rule": "or",
            "hash_key": "k",
            "start": "2027-01-01T00:00:00Z",
            "limit": 3,
            "jitter": 1.5,
            "exclude": ["2027-01-01T00:00:00Z", "2027-02-01", "2027-02-08T02:00:00"],
        },
    ),
    (
        Calendar("freq=daily;count=2", "UTC", anchor="2027-01-01T09:00:00"),
        {
            "kind": "calendar",
            "rrule": "FREQ=DAILY",
            "zone": "UTC",
            "anchor": "2027-01-01T09:00:00",
            "start": "2027-01-01T09:00:00Z",
            "limit": 2,
        },
    ),
    (
        Union([Once(NEW_YEAR)], holidays=HolidayCalendar("x", "1", ["2027-01-02"]), roll="next"),
        {
            "kind": "union",
            "schedules": [{"kind": "once", "at": "2027-01-01T00:00:00Z"}],
            "holidays": {"name": "x", "version": "1", "dates": ["2027-01-02"], "weekdays_off": []},
            "roll": "next",
        },
    ),
]


@pytest.mark.parametrize(("schedule", "stored"), STORED)
def test_the_stored_form_is_kept(schedule: Schedule, stored: dict[str, Any]) -> None:
    assert schedule.to_json() == stored
    assert schedule_from_json(stored) == schedule


@pytest.mark.parametrize(("schedule", "stored"), STORED)
def test_a_schedule_can_be_a_field_of_a_model(schedule: Schedule, stored: dict[str, Any]) -> None:
    class Holder(BaseModel):
        schedule: Schedule

    holder = Holder(schedule=schedule)
    assert holder.model_dump(mode="json") == {"schedule": stored}
    assert Holder.model_validate_json(holder.model_dump_json()) == holder
    assert TypeAdapter[Any](Schedule).validate_python(stored) == schedule


NO_SCHEDULE: list[tuple[dict[str, Any], str]] = [
    ({}, "kind"),
    ({"kind": "cron.2", "expression": "* * * * *", "zone": "UTC"}, "kind"),
    ({"kind": ["cron"]}, "kind"),
    ({"kind": "cron", "expression": "* * * * *"}, "zone"),
    ({"kind": "cron", "expression": "* * * * *", "zone": None}, "zone"),
    ({"kind": "cron", "expression": 5, "zone": "UTC"}, "expression"),
    ({"kind": "cron", "expression": "* * * * *", "zone": "UTC", "gap": "no"}, "gap"),
    ({"kind": "cron", "expression": "* * * * *", "zone": "UTC", "x": 1}, "x"),
    ({"kind": "every", "seconds": "soon"}, "seconds"),
    ({"kind": "every", "seconds": 60, "jitter": -1}, "jitter"),
    ({"kind": "every", "seconds": 60, "limit": 0}, "limit"),
    ({"kind": "every", "seconds": 60, "roll": "up"}, "roll"),
    ({"kind": "every", "seconds": 60, "holidays": {"name": "x"}}, "holidays|version"),
    ({"kind": "every", "seconds": 60, "exclude": {"a": 1}}, "exclude"),
    ({"kind": "once", "at": "soon"}, "at"),
    ({"kind": "once", "at": None}, "at"),
    ({"kind": "calendar", "rrule": None, "zone": "UTC"}, "rrule"),
    ({"kind": "union", "schedules": []}, "schedules"),
    ({"kind": "union", "schedules": [{"kind": "union", "schedules": []}]}, "schedules"),
    ({"kind": "union", "schedules": 5}, "union"),
]


@pytest.mark.parametrize(("stored", "wrong"), NO_SCHEDULE)
def test_what_is_no_schedule_is_refused(stored: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidSchedule, match=wrong):
        schedule_from_json(stored)


def test_a_schedule_cannot_be_changed() -> None:
    schedule = Cron("0 9 * * *", "UTC")
    with pytest.raises(ValueError, match="frozen"):
        schedule.zone = "Asia/Tokyo"  # pyright: ignore[reportAttributeAccessIssue]
