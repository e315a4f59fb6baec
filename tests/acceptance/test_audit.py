"""The log's answers on the command line: changes, stories, runs, skips, figures, and files."""

import csv
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import parquet  # pyright: ignore[reportMissingTypeStubs]
from tests.acceptance.conftest import Horolog, eventually

from horolog import Scheduler


@pytest.fixture
def lived(horolog: Horolog, scheduler: Scheduler) -> Horolog:
    """Two jobs that ran, one of them twice, and one that was paused and cancelled."""
    horolog.start_scanner_and_worker()
    horolog("job", "register", "echo", "--in", "0.1", "--key", "once", "--owner", "sales")
    horolog("job", "register", "poison", "--in", "0.1", "--key", "poison", "--max-attempts", "1")
    job = horolog("job", "register", "echo", "--every", "3600", "--key", "hourly", "--json").json
    horolog("job", "pause", "hourly", "--reason", "holidays")
    horolog("job", "update", "hourly", "--timeout", "9", "--reason", "it hung")
    scheduler.trigger(job["id"], at=datetime.now(UTC) + timedelta(hours=1))
    horolog("job", "cancel", "hourly")
    eventually(lambda: len(scheduler.occurrences(state="succeeded")) == 1)
    eventually(lambda: scheduler.dead_letters())
    return horolog


def test_the_log_answers_who_changed_what_and_why_it_ended_so(lived: Horolog) -> None:
    told = lived.within("job", "changes", "hourly").out
    for words in (
        "registered by",
        "paused by",
        "because 'holidays'",
        "status: active → paused",
        "timeout: 9",
    ):
        assert words in told
    changes = json.loads(lived.within("job", "changes", "hourly", "--json").out)
    assert [change["what"] for change in changes] == [
        "registered", "paused", "policies_changed", "cancelled",
    ]  # fmt: skip

    (dead,) = json.loads(lived.within("occurrence", "list", "--state", "dead", "--json").out)
    story = lived.within("occurrence", "explain", dead["id"]).out
    for words in ("registered the job poison", "fencing token", "began attempt 1", "dead-lettered"):
        assert words in story
    assert json.loads(lived.within("occurrence", "explain", dead["id"], "--json").out)["steps"]


def test_the_audit_tells_runs_skips_figures_and_what_was_due(
    lived: Horolog, scheduler: Scheduler
) -> None:
    runs = json.loads(lived.within("audit", "runs", "--json").out)
    assert {run["state"] for run in runs} == {"succeeded", "dead"}
    assert all(run["late_s"] >= 0 and run["worker"] for run in runs)
    table = lived.within("audit", "runs", "--owner", "sales").out
    assert "once" in table
    assert "poison" not in table
    (one,) = json.loads(lived.within("audit", "runs", "--job", "poison", "--json").out)
    assert one["failure"] is not None
    assert "nothing ran" in lived.within("audit", "runs", "--until", "2020-01-01T00:00Z").out
    listed = lived.within("audit", "runs", "--limit", "1").out
    assert f"more: --after {runs[0]['id']}" in listed

    (skip,) = json.loads(lived.within("audit", "skips", "--json").out)
    assert (skip["cause"], skip["name"]) == ("cancelled", "echo")
    assert "job was cancelled" in lived.within("audit", "skips").out

    rows = json.loads(lived.within("audit", "stats", "--by", "name", "--json").out)
    assert {row["name"]: row["runs"] for row in rows} == {"echo": 1, "poison": 1}
    assert "poison" in lived.within("audit", "stats").out

    before = scheduler.history("hourly")[0].recorded_at.isoformat()
    due = json.loads(lived.within("audit", "due", before, "--json").out)
    assert "hourly" in {scheduler.job(entry["job_id"]).key for entry in due}
    first = scheduler.history("once")[0].recorded_at.isoformat()
    (entry,) = json.loads(lived.within("audit", "due", first, "--json").out)
    assert (entry["kind"], entry["job_id"]) == ("job", str(scheduler.job("once").id))
    assert "echo" in lived.within("audit", "due", before).out
    then = json.loads(lived.within("job", "show", "hourly", "--as-of", before, "--json").out)
    assert (then["status"], then["timeout"]) == ("active", None)
    past = json.loads(lived.within("job", "list", "--as-of", before, "--json").out)
    assert {job["key"]: job["status"] for job in past}["hourly"] == "active"
    assert "no offset" in lived.within("audit", "due", "2027-01-01T00:00:00", status=1).err


@pytest.mark.parametrize(
    "listing",
    [
        ("audit", "runs", "--state", "skipped"),
        ("audit", "skips"),
        ("audit", "stats"),
        ("audit", "due", "2999-01-01T00:00:00+00:00"),
        ("log",),
        ("job", "list"),
        ("job", "changes", "k1"),
        ("job", "history", "k1"),
        ("occurrence", "list"),
    ],
    ids=" ".join,
)
def test_a_listing_goes_into_files(
    horolog: Horolog, scheduler: Scheduler, tmp_path: Path, listing: tuple[str, ...]
) -> None:
    jobs = [horolog_job(scheduler, n) for n in range(3)]
    scheduler.trigger(jobs[0], at=datetime.now(UTC) + timedelta(hours=1))
    scheduler.trigger(jobs[1], at=datetime.now(UTC) + timedelta(hours=1))
    scheduler.cancel(jobs[0])
    to_csv, to_parquet = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    said = horolog.within(*listing, "--csv", str(to_csv), "--parquet", str(to_parquet), "--json")
    document = horolog.within(*listing, "--json").out
    streams = listing == ("log",) or "history" in listing
    lines = document.splitlines() if streams else json.loads(document)
    assert json.loads(said.out) == {
        "rows": len(lines),
        "files": [str(to_csv), str(to_parquet)],
    }
    with to_csv.open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(to_parquet)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    assert len(rows) == table.num_rows == len(lines) > 0  # pyright: ignore[reportUnknownMemberType]
    assert list(rows[0]) == table.column_names  # pyright: ignore[reportUnknownMemberType]


def test_what_happened_to_one_goes_into_a_file(
    horolog: Horolog, scheduler: Scheduler, tmp_path: Path
) -> None:
    job = horolog_job(scheduler, 1)
    run = scheduler.trigger(job, at=datetime.now(UTC) + timedelta(hours=1))
    scheduler.cancel_occurrence(run.id)
    file = tmp_path / "rows.csv"
    for listing in (
        ("occurrence", "history", str(run.id)),
        ("alert", "history"),
        ("dead-letters", "list"),
    ):
        said = horolog.within(*listing, "--csv", str(file), "--json")
        with file.open(newline="") as written:
            assert len(list(csv.DictReader(written))) == json.loads(said.out)["rows"]


def horolog_job(scheduler: Scheduler, number: int) -> str:
    from horolog import Every

    job = scheduler.register("echo", schedule=Every(3600), key=f"k{number}", payload={"n": number})
    return str(job.id)


def test_a_file_that_cannot_be_written_is_refused_in_one_line(
    horolog: Horolog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = str(tmp_path / "no" / "such" / "folder.csv")
    assert "No such file" in horolog.within("log", "--csv", nowhere, status=1).err
    refused = horolog.within("log", "--follow", "--csv", str(tmp_path / "x"), status=2)
    assert "--follow has no end" in refused.err
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = horolog.within("log", "--parquet", str(tmp_path / "x.parquet"), status=2)
    assert "pip install 'horolog[parquet]'" in refused.err
