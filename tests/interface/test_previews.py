"""What a schedule does, and what another would do instead, shown before anything is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horolog import Cron, Every, InvalidSchedule, UnknownJob
from horolog.interface.cli.main import run
from horolog.testing import SimulatedScheduler

START = datetime(2027, 3, 12, 12, tzinfo=UTC)
NEW_YORK = "America/New_York"
HALF_PAST_TWO = ("30 2 * * *", NEW_YORK)
Told = Callable[..., str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """What a command says on standard output, if it ends with this status."""

    def tell(*arguments: str, status: int = 0) -> str:
        assert run(arguments) == status
        said = capsys.readouterr()
        return said.out if status == 0 else said.err

    return tell


def test_a_change_of_schedule_is_compared_from_now_on() -> None:
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register("report", schedule=Cron(*HALF_PAST_TWO), key="k")
        skipping = Cron(*HALF_PAST_TWO, gap="skip")
        found = scheduler.compare("k", skipping, n=4)
        assert [fire.at.day for fire in found.kept] == [13, 15, 16]
        assert [fire.note for fire in found.removed] == ["02:30 does not exist; ran after the gap"]
        assert not found.added
        assert scheduler.compare(job.id, Cron(*HALF_PAST_TWO)).unchanged
        assert scheduler.position() == 1
        with pytest.raises(UnknownJob):
            scheduler.compare("nobody", skipping)
        with pytest.raises(InvalidSchedule, match="give Once"):
            scheduler.compare("k", "0 2 * * *")  # pyright: ignore[reportArgumentType]


def test_what_a_limit_leaves_is_what_is_compared() -> None:
    with SimulatedScheduler(start=START) as scheduler:
        job = scheduler.register("report", schedule=Every(3600, limit=5))
        scheduler.advance(hours=3)
        found = scheduler.compare(job.id, Every(3600, anchor=START))
        assert [fire.at for fire in found.kept] == [START + timedelta(hours=n) for n in (4, 5)]
        assert len(found.added) == 18
        scheduler.advance(hours=3)
        assert scheduler.compare(job.id, Every(3600, anchor=START)).kept == ()


def test_two_schedules_are_compared_without_a_server(told: Told) -> None:
    old = ["--old-cron", HALF_PAST_TWO[0], "--old-zone", NEW_YORK]
    new = ["--cron", HALF_PAST_TWO[0], "--zone", NEW_YORK, "--gap", "skip"]
    asked = [*old, *new, "-n", "4", "--after", START.isoformat()]
    lines = told("schedule", "diff", *asked).splitlines()
    (gone,) = [line for line in lines if line.startswith("-")]
    assert "2027-03-14T07:00:00+00:00   2027-03-14T03:00:00-04:00" in gone
    assert lines[-1].startswith("0 more, 1 fewer, 3 the same")
    document = json.loads(told("schedule", "diff", *asked, "--json"))
    assert [len(document[name]) for name in ("kept", "added", "removed")] == [3, 0, 1]
    assert document["until"] == "2027-03-16T06:30:00+00:00"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--every", "60"],
        ["job", "--old-every", "30", "--every", "60"],
        ["job", "--every", "60", "--after", "2027-01-01T00:00:00Z"],
        ["--old-every", "60"],
        ["--old-every", "60", "--old-cron", "* * * * *", "--every", "60"],
    ],
)
def test_a_difference_needs_just_two_schedules(told: Told, arguments: list[str]) -> None:
    assert "horolog: " in told("schedule", "diff", *arguments, status=2)


def test_a_preview_shows_local_times_notes_and_a_picture(told: Told) -> None:
    asked = ["--cron", HALF_PAST_TWO[0], "--zone", NEW_YORK, "--after", START.isoformat()]
    said = told("schedule", "preview", *asked, "-n", "3", "--month")
    assert "02:30 does not exist; ran after the gap" in said
    (sunday,) = [line for line in said.splitlines() if line.startswith("Sun 14")]
    assert sunday.split()[2:6] == ["·", "·", "·", "1"]
    assert sunday.endswith("clock change")
    fires: list[dict[str, Any]] = json.loads(
        told("schedule", "preview", *asked, "-n", "3", "--json")
    )
    assert fires[1]["local"] == "2027-03-14T03:00:00-04:00"
