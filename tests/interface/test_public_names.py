"""The names that programs outside are written against, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import horolog

PUBLIC = [
    "AsyncScheduler",
    "Calendar",
    "Cron",
    "DeadLetter",
    "Difference",
    "Every",
    "FireTime",
    "Forgetting",
    "HolidayCalendar",
    "HorologError",
    "InvalidPayload",
    "InvalidPolicy",
    "InvalidSchedule",
    "InvalidSetting",
    "Job",
    "JobSpec",
    "KeyConflict",
    "LoggedEvent",
    "NoMasterKey",
    "NotAllowed",
    "Occurrence",
    "Once",
    "OutOfRange",
    "Permanent",
    "PlannedRun",
    "Projection",
    "ProjectionStopped",
    "QueueUnavailable",
    "Ref",
    "Retry",
    "Retryable",
    "Run",
    "Schedule",
    "ScheduleDifference",
    "Scheduler",
    "SchemaMissing",
    "SchemaTooNew",
    "Settings",
    "Snooze",
    "StaleFence",
    "StoreUnavailable",
    "SubjectForgotten",
    "Union",
    "UnknownJob",
    "UnknownOccurrence",
    "UnreadableEvent",
    "VersionConflict",
    "Worker",
    "WorkerSettings",
    "ZoneCorrection",
    "reset_projection",
    "run_projection",
]


def test_the_public_names_are_these_and_sorted() -> None:
    assert horolog.__all__ == PUBLIC == sorted(PUBLIC)
    for name in PUBLIC:
        assert getattr(horolog, name) is not None
        assert name in dir(horolog)
    with pytest.raises(AttributeError, match="'horolog' has no attribute 'Nonsense'"):
        _ = horolog.Nonsense  # pyright: ignore[reportAttributeAccessIssue]


def _in_a_fresh_process(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("program", ["import horolog", "from horolog import Scheduler, Cron, Job"])
def test_a_client_does_not_import_what_only_others_need(program: str) -> None:
    found = _in_a_fresh_process(
        f"{program}\nimport sys\n"
        "print([m for m in ('eventsourcing', 'nats', 'click', 'rich') if m in sys.modules])"
    )
    assert found == "[]"


@pytest.mark.parametrize(
    "module", ["horolog", "horolog.interface.cli.main", "horolog.interface.cli.dev"]
)
def test_only_the_web_server_imports_a_web_framework(module: str) -> None:
    found = _in_a_fresh_process(
        f"import {module}, sys\n"
        "print([m for m in ('fastapi', 'starlette', 'jinja2', 'uvicorn') if m in sys.modules])"
    )
    assert found == "[]"


def test_the_import_takes_at_most_a_quarter_of_a_second() -> None:
    """By the processor's time of the best of several tries: the machine has other work too."""
    program = (
        "import time; began = time.process_time(); import horolog;"
        " print(time.process_time() - began)"
    )
    assert min(float(_in_a_fresh_process(program)) for _ in range(3)) <= 0.25
