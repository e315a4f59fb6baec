"""`job upcoming`, `job reschedule --dry-run` and `schedule zone-data` on real servers."""

from tests.acceptance.conftest import Horolog

NIGHTLY = ["--cron", "30 2 * * *", "--zone", "America/New_York"]


def test_a_change_is_shown_before_it_is_made(horolog: Horolog) -> None:
    horolog("job", "register", "report", *NIGHTLY, "--key", "k", "--jitter", "600")
    shown = horolog("job", "upcoming", "k", "-n", "3", "--month").out
    assert "due with jitter" in shown
    assert sum(line.startswith(("Sat", "Sun")) for line in shown.splitlines()) >= 8
    assert len(horolog("job", "upcoming", "k", "-n", "3", "--json").json) == 3

    other = ["--cron", "30 3 * * *", "--zone", "America/New_York"]
    events = len(horolog("log", "--json").out.splitlines())
    dry = horolog("job", "reschedule", "k", *other, "--dry-run", "-n", "5").out
    assert sum(line.startswith("+") for line in dry.splitlines()) == 4
    assert horolog("schedule", "diff", "k", *other, "--json").json["kept"] == []
    assert len(horolog("log", "--json").out.splitlines()) == events

    said = horolog("schedule", "zone-data").out
    assert "every job's next fire time is right by tzdata" in said
    assert horolog("schedule", "zone-data", "--apply", "--json").out == ""


def test_a_backfill_is_shown_before_it_is_ordered(horolog: Horolog) -> None:
    anchor = "2026-01-01T00:00:00+00:00"
    horolog("job", "register", "report", "--every", "3600", "--anchor", anchor, "--key", "k")
    asked = ["k", "--start", anchor, "--end", "2026-01-01T03:00:00+00:00", "--reverse"]
    dry = horolog("job", "backfill", *asked, "--dry-run").out
    assert dry.splitlines()[-1] == "4 runs would be ordered"
    planned = horolog("job", "backfill", *asked, "--dry-run", "--json").json
    assert [run["fire_time"][11:13] for run in planned] == ["03", "02", "01", "00"]
    assert horolog("job", "backfill", *asked, "--rate", "10").out == "4 runs ordered\n"
    assert horolog("job", "backfill", *asked, "--json").json["ordered"] == 0
    assert horolog("job", "backfill", *asked, "--rate", "-1", status=1).err
