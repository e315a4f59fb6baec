"""What counts as another definition, and what registration had only filled in."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from horolog.application.commands.defining import define
from horolog.application.commands.differing import differing_fields
from horolog.application.commands.job_spec import JobSpec
from horolog.domain.schedule import Calendar, Cron, Every, Once, Schedule, Union

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=3)
JOB = UUID(int=7)


def differing(before: Schedule, after: Schedule, **changed: Any) -> list[str]:
    """The fields that differ where a job is registered anew, three days later."""
    present = define(JobSpec("a", schedule=before), JOB, NOW)
    wanted = define(JobSpec("a", schedule=after, **changed), JOB, LATER)
    return differing_fields(present, wanted, after.to_json())


@pytest.mark.parametrize(
    "schedule",
    [
        Once(LATER),
        Every(60),
        Every(86_400, zone="Europe/Berlin", keep_local_hour=True),
        Every(60, anchor=NOW),
        Cron("0 2 * * *", zone="UTC"),
        Cron("H H * * *", zone="UTC"),
        Calendar("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", zone="UTC"),
        Union([Every(60), Cron("H 3 * * *", zone="UTC")], end=LATER),
    ],
)
def test_the_same_words_at_another_time_are_the_same_job(schedule: Schedule) -> None:
    assert differing(schedule, schedule) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Every(60), Every(61)),
        (Every(60), Every(60, jitter=1)),
        (Every(60, jitter=1), Every(60)),
        (Every(60), Every(60, anchor=LATER)),
        (Every(60), Cron("* * * * *", zone="UTC")),
        (Cron("0 2 * * *", zone="UTC"), Cron("0 2 * * *", zone="Europe/Berlin")),
        (Union([Every(60)]), Union([Every(60), Every(61)])),
        (Union([Every(60), Every(61)]), Union([Every(60)])),
    ],
)
def test_another_schedule_is_another_definition(before: Schedule, after: Schedule) -> None:
    assert differing(before, after) == ["schedule"]


def test_each_field_that_differs_is_named() -> None:
    found = differing(Every(60), Every(61), payload={"n": 1}, owner="x", labels={"a": "b"})
    assert found == ["schedule", "payload", "owner", "labels"]
