"""`horolog job apply` on real servers: the difference, its making, and nothing a second time."""

from pathlib import Path

from tests.acceptance.conftest import Horolog

FILE = """
[[jobs]]
key = "bill"
name = "invoices.bill"
schedule = {cron = "0 2 * * *", zone = "America/New_York"}
payload = {amount = 10}

[[jobs]]
key = "beat"
name = "beat"
schedule = {every = 3600}
"""


def test_a_file_of_jobs_is_made_true_once(horolog: Horolog, tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(FILE)
    assert horolog("job", "apply", str(file), "--dry-run").out.splitlines() == [
        "+ bill",
        "+ beat",
        "2 would be created, 0 would be changed, 0 would be pruned, 0 would be unchanged",
    ]
    assert horolog("jobs", "apply", str(file), "--json").json["created"] == ["bill", "beat"]
    events = len(horolog("log", "--json").out.splitlines())
    again = horolog("job", "apply", str(file), "--json").json
    assert (again["created"], again["unchanged"]) == ([], ["bill", "beat"])
    assert len(horolog("log", "--json").out.splitlines()) == events

    file.write_text(FILE.replace("0 2 * * *", "30 2 * * *").partition('[[jobs]]\nkey = "beat"')[0])
    said = horolog("job", "apply", str(file), "--prune", "--reason", "moved").out
    assert "cron 0 2 * * * in America/New_York → cron 30 2 * * * in America/New_York" in said
    assert "- beat" in said
    assert horolog("job", "show", "beat", "--json").json["status"] == "cancelled"

    file.write_text(FILE)
    refused = horolog("job", "apply", str(file), status=1)
    assert "does not come back" in refused.err
    file.write_text("[[jobs]]\nname = 'x'\n")
    assert "job 1: it has no schedule" in horolog("job", "apply", str(file), status=1).err
    assert horolog("job", "apply", str(file), "--within", "a=b", status=2).err
