"""The guides for who comes from elsewhere: a crontab, Celery beat, APScheduler."""

import json
import shutil

from tests.acceptance.conftest import eventually
from tests.acceptance.guides.desk import Desk
from tests.acceptance.guides.following import by_shell
from tests.acceptance.guides.guide import Guide, Says
from tests.acceptance.shown import ROOT


def of_a_crontab(desk: Desk) -> None:
    desk.write(
        "table", "CRON_TZ=Europe/Berlin\n30 2 * * 1-5 echo backed up\n*/10 * * * * echo looked\n"
    )
    desk.write("bin/crontab", f"#!/bin/sh\nexec cat '{desk.terminal.folder}/table'\n")
    (desk.terminal.folder / "bin" / "crontab").chmod(0o755)
    shutil.copy(ROOT / "examples" / "crontab_worker.py", desk.terminal.folder)


def after_a_crontab(desk: Desk) -> None:
    """What was in the crontab runs here."""
    desk.terminal.start("scanner")
    with desk.scheduler() as scheduler:
        jobs = scheduler.jobs(name="crontab.run")
        assert len(jobs) == 2
        for job in jobs:
            run = scheduler.trigger(job.id)
            eventually(lambda run=run: scheduler.occurrence(run.id).state == "succeeded")
            output = scheduler.occurrence(run.id).result["output"]
            assert f"echo {output.strip()}" == job.payload["command"]


def of_celery(desk: Desk) -> None:
    from tests.interface.importing.test_celery_beat import CRONTAB, TASK

    records = [
        {"model": "django_celery_beat.crontabschedule", "pk": 1, "fields": CRONTAB},
        {"model": "django_celery_beat.periodictask", "pk": 1, "fields": TASK},
    ]
    desk.write("beat.json", json.dumps(records))


def of_apscheduler(desk: Desk) -> None:
    """An application with a scheduler in its code, and the job store of another one."""
    from tests.interface.importing.test_apscheduler import PROGRAM

    desk.write("myapp/__init__.py", "")
    desk.write("myapp/scheduling.py", PROGRAM.replace("scheduling:work", "myapp.scheduling:work"))
    made = by_shell(desk, "python -m myapp.scheduling store sqlite:///jobs.sqlite", "", Says())
    assert made is not None
    assert made.status == 0, made


def after_apscheduler(desk: Desk) -> None:
    exported = json.loads((desk.terminal.folder / "jobs.json").read_text())
    assert {job["key"] for job in exported["jobs"]} == {"nightly", "often", "once"}


CRON = Guide("integrations/cron", of_a_crontab, then=after_a_crontab, whole=False)

CELERY_BEAT = Guide(
    "integrations/celery-beat", of_celery,
    says={"horolog job apply jobs.json --dry-run": Says(("Bills",))},
)  # fmt: skip

APSCHEDULER = Guide(
    "integrations/apscheduler", of_apscheduler, then=after_apscheduler, whole=False,
    says={"horolog import apscheduler jobs-there.json -o jobs.json": Says(("refused",), 1)},
)  # fmt: skip
