"""Crontabs, as cron reads them."""

import json
import runpy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from horolog.interface.cli.main import run
from horolog.interface.importing.crontab import read_crontab
from horolog.interface.importing.declared import Imported
from horolog.interface.job_file import read_job, read_job_file
from horolog.testing import SimulatedScheduler

ROOT = Path(__file__).parents[3]


def only(text: str, **options: Any) -> dict[str, Any]:
    found = read_crontab(text, zone="UTC", **options)
    assert len(found.jobs) == 1, found.remarks
    return found.jobs[0]


def refusal(text: str, *, zone: str | None = "UTC", system: bool = False) -> str:
    found: Imported = read_crontab(text, zone=zone, system=system)
    assert not found.jobs
    (remark,) = [one for one in found.remarks if one.kind == "refused"]
    return remark.said


def test_a_line_keeps_its_meaning() -> None:
    job = only("30 2 * * 1-5\t/usr/bin/backup --full\n")
    assert job["schedule"] == {"cron": "30 2 * * 1-5", "zone": "UTC"}
    assert job["payload"] == {"command": "/usr/bin/backup --full"}
    assert (job["catch_up"], job["retry"]) == ("skip", {"max_attempts": 1})
    assert job["key"].startswith("crontab-usr-bin-backup-full-")


@pytest.mark.parametrize(
    ("nickname", "expression"),
    [("@daily", "0 0 * * *"), ("@Hourly", "0 * * * *"), ("@weekly", "0 0 * * 0"),
     ("@yearly", "0 0 1 1 *"), ("@monthly", "0 0 1 * *"), ("@midnight", "0 0 * * *")],
)  # fmt: skip
def test_nicknames(nickname: str, expression: str) -> None:
    assert only(f"{nickname} x")["schedule"]["cron"] == expression


def test_a_reboot_is_refused_with_a_word() -> None:
    assert "@reboot" in refusal("@reboot /usr/bin/x")
    assert "no line of a crontab" in refusal("@fortnightly x")
    assert "no line of a crontab" in refusal("* * * * *")
    assert "--zone" in refusal("* * * * * x", zone=None)
    assert "jitter" in refusal("0~30 * * * * x")
    assert "25" in refusal("0 25 * * * x")


def test_the_zone_is_the_nearest_one_above() -> None:
    found = read_crontab(
        "0 1 * * * a\nCRON_TZ=Europe/Berlin\n0 1 * * * b\nCRON_TZ = 'Asia/Tokyo'\n0 1 * * * c\n",
        zone="UTC",
    )
    assert [job["schedule"]["zone"] for job in found.jobs] == ["UTC", "Europe/Berlin", "Asia/Tokyo"]


def test_variables_hold_for_the_lines_below_them() -> None:
    found = read_crontab(
        '* * * * * a\nPATH=/opt/bin:/bin\nNAME="a b"\nMAILTO=ops\n* * * * * X=1 b\n', zone="UTC"
    )
    first, second = (job["payload"] for job in found.jobs)
    assert "environment" not in first
    assert second["command"] == "X=1 b"
    assert second["environment"] == {"PATH": "/opt/bin:/bin", "NAME": "a b", "MAILTO": "ops"}
    (remark,) = found.remarks
    assert "not mailed to ops" in remark.said


@pytest.mark.parametrize(
    ("line", "command", "stdin"),
    [
        (r"date +\%Y-\%m", "date +%Y-%m", None),
        ("mail bob%hello%bob", "mail bob", "hello\nbob\n"),
        (r"mail % 100\% %x", "mail", " 100% \nx\n"),
        ("cat%", "cat", "\n"),
    ],
)
def test_a_percent_ends_the_command_and_begins_its_input(
    line: str, command: str, stdin: str | None
) -> None:
    payload = only(f"* * * * * {line}")["payload"]
    assert (payload["command"], payload.get("stdin")) == (command, stdin)


def test_the_systems_table_names_a_user() -> None:
    found = read_crontab("17 * * * *\troot    cd / && run-parts /etc/x\n", zone="UTC", system=True)
    assert found.jobs[0]["payload"] == {"command": "cd / && run-parts /etc/x", "user": "root"}
    assert "it ran as root" in found.remarks[0].said
    assert "no command" in refusal("17 * * * * root", system=True)


def test_the_same_command_twice_is_two_jobs_and_keys_stay_when_a_time_changes() -> None:
    twice = read_crontab("1 * * * * x\n2 * * * * x\n", zone="UTC")
    keys = [job["key"] for job in twice.jobs]
    assert len(set(keys)) == 2
    again = read_crontab("5 * * * * x\n# note\n\n2 * * * * x\n", zone="UTC")
    assert [job["key"] for job in again.jobs] == keys


def test_the_command_line_writes_what_apply_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, document = tmp_path / "crontab", tmp_path / "jobs.json"
    table.write_text("CRON_TZ=Europe/Berlin\n30 2 * * * backup\n@reboot start\n")
    assert run(["import", "crontab", str(table), "-o", str(document)]) == 1
    said = capsys.readouterr().err
    assert "line 3: refused: @reboot" in said
    assert "1 jobs imported, 1 refused" in said
    (spec,) = read_job_file(document)
    assert spec.name == "crontab.run"
    assert run(["import", "crontab", str(table), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["remarks"][0]["kind"] == "refused"
    assert run(["import", "crontab", str(tmp_path / "none")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_imported_lines_run_their_commands() -> None:
    worker = runpy.run_path(str(ROOT / "examples" / "crontab_worker.py"))["worker"]
    found = read_crontab("WORD=hi\n0 2 * * * echo $WORD; cat%there\n0 3 * * * exit 3\n", zone="UTC")
    with SimulatedScheduler(worker, start=datetime(2027, 3, 1, tzinfo=UTC)) as scheduler:
        for job in found.jobs:
            spec = read_job(job)
            scheduler.apply([spec])
        scheduler.advance(hours=4)
        good, bad = scheduler.occurrences()
        assert scheduler.occurrence(good.id).result == {"output": "hi\nthere\n"}
        assert bad.state == "dead"
