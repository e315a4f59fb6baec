"""APScheduler's jobs, through the exporter that runs beside it, and what each trigger becomes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from horolog.interface.cli.main import run
from horolog.interface.importing.apscheduler import read_export
from horolog.interface.importing.declared import Imported

PROGRAM = """
from datetime import datetime, timezone
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
import os, sys

def work(*args, **kwargs): ...

scheduler = BackgroundScheduler(timezone="Europe/Berlin")
if len(sys.argv) > 2 and sys.argv[1] == "store":
    scheduler.add_jobstore(SQLAlchemyJobStore(url=sys.argv[2]))
scheduler.add_job("scheduling:work", "cron", day_of_week="0-4", hour=2, minute=30, id="nightly",
                  kwargs={"n": 1}, misfire_grace_time=60)
scheduler.add_job("scheduling:work", "interval", minutes=5, id="often", args=[1], max_instances=3,
                  coalesce=False, jitter=10)
scheduler.add_job("scheduling:work", "date", run_date=datetime(2040, 1, 1, tzinfo=timezone.utc),
                  id="once")
scheduler.add_job("scheduling:work", "cron", second="*/5", id="seconds")
if __name__ == "__main__":
    scheduler.start(paused=True)
    scheduler.shutdown()
"""


@pytest.fixture
def exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the exporter as a user would."""
    pytest.importorskip("apscheduler")
    (tmp_path / "scheduling.py").write_text(PROGRAM)
    assert run(["import", "apscheduler", "--exporter"]) == 0
    (tmp_path / "export.py").write_text(capsys.readouterr().out)

    def export(*arguments: str, program: str = "export.py") -> str:
        done = subprocess.run(
            [sys.executable, program, *arguments], cwd=tmp_path, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout

    return export


def check(found: Imported) -> None:
    jobs = {job["key"]: job for job in found.jobs}
    assert set(jobs) == {"nightly", "often", "once"}
    nightly = jobs["nightly"]
    assert nightly["name"] == "scheduling:work"
    assert nightly["schedule"] == {"cron": "30 2 * * mon,tue,wed,thu,fri", "zone": "Europe/Berlin"}
    assert (nightly["overlap"], nightly["catch_up"]) == ("skip", "latest")
    assert (nightly["catch_up_window"], nightly["payload"]) == (60.0, {"n": 1})
    often = jobs["often"]
    assert (often["schedule"]["every"], often["schedule"]["jitter"]) == (300.0, 10)
    assert (often["overlap"], often["concurrency_limit"], often["catch_up"]) == ("allow", 3, "all")
    assert often["payload"] == {"args": [1]}
    assert jobs["once"]["schedule"] == {"at": "2040-01-01T00:00:00+00:00"}
    (refused,) = [one for one in found.remarks if one.kind == "refused"]
    assert (refused.entry, "seconds" in refused.said) == ("seconds", True)


def test_the_jobs_of_a_scheduler_in_code(exported: Any) -> None:
    check(read_export(exported("scheduling:scheduler")))


def test_the_pickles_of_a_job_store_are_opened_by_the_users_own_process(
    exported: Any, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/jobs.sqlite"
    exported("store", url, program="scheduling.py")
    before = (tmp_path / "jobs.sqlite").read_bytes()
    check(read_export(exported("--url", url)))
    assert (tmp_path / "jobs.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"day": "1", "day_of_week": "mon"}, "both at once"),
        ({"day": "1st fri"}, "recurrence rule"),
        ({"week": "5"}, "no weeks"),
        ({"year": "2030"}, "no years"),
        ({"day_of_week": "8"}, "cannot be read"),
    ],
)
def test_a_cron_trigger_that_no_expression_says_is_refused(
    fields: dict[str, str], said: str
) -> None:
    plain = dict.fromkeys(("year", "month", "day", "week", "day_of_week", "hour", "minute"), "*")
    trigger = {"kind": "CronTrigger", "fields": plain | {"second": "0"} | fields, "zone": "UTC"}
    job = {"id": "a", "func": "m:f", "trigger": trigger}
    found = read_export(json.dumps({"horolog": "apscheduler.1", "jobs": [job]}))
    assert found.jobs == []
    assert said in found.remarks[0].said


@pytest.mark.parametrize(
    ("text", "days"), [("*", "*"), ("0", "mon"), ("sat-sun", "sat,sun"), ("*/2", "mon,wed,fri,sun")]
)
def test_weekdays_are_counted_from_monday_there(text: str, days: str) -> None:
    fields = {"day": "*", "day_of_week": text, "hour": "1", "minute": "0", "month": "*"}
    trigger = {"kind": "CronTrigger", "fields": fields, "zone": "UTC"}
    job = {"id": "a", "func": "m:f", "trigger": trigger}
    (declared,) = read_export(json.dumps({"horolog": "apscheduler.1", "jobs": [job]})).jobs
    assert declared["schedule"]["cron"] == f"0 1 * * {days}"


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--exporter"):
        read_export("{}")
    job = {"id": "a", "error": "ImportError: gone"}
    found = read_export(json.dumps({"horolog": "apscheduler.1", "jobs": [job]}))
    assert found.remarks[0].said == "ImportError: gone"
