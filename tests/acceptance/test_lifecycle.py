"""A job's life by the command line alone: registered, changed, run, failed, looked at, ended."""

from tests.acceptance.conftest import Horolog, eventually

from horolog import Scheduler


def test_a_job_is_registered_changed_triggered_and_cancelled(horolog: Horolog) -> None:
    job = horolog(
        *("job", "register", "invoices.bill", "--cron", "0 2 * * *", "--zone", "America/New_York"),
        *("--payload", '{"amount": 10}', "--key", "bill-42", "--queue", "billing"),
        *("--owner", "team-billing", "--label", "region=us", "--max-attempts", "7", "--json"),
    ).json
    assert job["status"] == "active"
    assert job["payload"] == {"amount": 10}
    assert job["retry"]["max_attempts"] == 7
    assert horolog("job", "show", "bill-42", "--json").json == job

    fires = horolog("job", "upcoming", "bill-42", "-n", "3", "--json").json
    assert fires[0]["at"] == job["next_run"]
    assert all(fire["local"][11:16] == "02:00" for fire in fires)

    paused = horolog("job", "pause", "bill-42", "--reason", "stop", "--json").json
    assert (paused["status"], paused["next_run"]) == ("paused", None)
    assert horolog("job", "resume", "bill-42", "--json").json["next_run"] == job["next_run"]
    changed = horolog("job", "update", "bill-42", "--payload", '{"amount": 11}', "--json").json
    assert changed["payload"] == {"amount": 11}
    moved = horolog("job", "reschedule", "bill-42", "--every", "3600", "--json").json
    assert moved["schedule"]["kind"] == "every"

    listed = horolog("job", "list", "--label", "region=us", "--json").json
    assert [one["id"] for one in listed] == [job["id"]]
    first = horolog("job", "trigger", "bill-42", "--request-id", "r1", "--json").json
    again = horolog("job", "trigger", "bill-42", "--request-id", "r1", "--json").json
    assert first["id"] == again["id"]

    cancelled = horolog("job", "cancel", "bill-42", "--reason", "closed", "--json").json
    assert cancelled["status"] == "cancelled"
    history = horolog("job", "history", "bill-42").out
    for words in ("job.registered", "because 'stop'", "job.rescheduled", "because 'closed'"):
        assert words in history
    assert "bill-42" in horolog("job", "list").out
    assert horolog("job", "list", "--status", "active", "--json").json == []


def test_a_dead_letter_is_found_replayed_and_discarded(
    horolog: Horolog, scheduler: Scheduler
) -> None:
    horolog.start_scanner_and_worker()
    horolog(
        *("job", "register", "poison", "--in", "0.1", "--max-attempts", "2"),
        *("--retry-base", "0.1", "--owner", "team-a"),
    )

    eventually(lambda: scheduler.dead_letters(owner="team-a"))
    (letter,) = horolog("dead-letters", "list", "--owner", "team-a", "--json").json
    assert (letter["cause"], letter["attempt"]) == ("exhausted", 2)
    doctor = horolog("doctor", "--json", status=1).json
    assert any("team-a" in finding["do"] for finding in doctor["findings"])

    identity = str(letter["id"])
    horolog("dead-letters", "replay", identity, "--reason", "the bug is fixed, we hope")
    again = eventually(lambda: [one for one in scheduler.dead_letters() if one.attempt == 4])
    assert str(again[0].id) == identity
    discarded = horolog("dead-letters", "discard", identity, "--reason", "no", "--json").json
    assert discarded["state"] == "discarded"
    assert scheduler.dead_letters() == []
    story = horolog("occurrence", "history", identity).out
    for words in ("dead_lettered", "replayed", "because 'the bug is fixed, we hope'", "discarded"):
        assert words in story


def test_a_handler_that_nobody_has_waits_and_is_reported(horolog: Horolog) -> None:
    horolog.start_scanner_and_worker()
    horolog("job", "register", "nobody.handles.this", "--in", "0.1")
    eventually(
        lambda: [
            finding
            for finding in horolog.ask("doctor", "--json").json["findings"]
            if "nobody.handles.this" in finding["what"] and "worker" in finding["do"]
        ]
    )
    waiting = horolog("occurrence", "list", "--json").json
    assert [one["state"] for one in waiting] == ["claimed"]


def test_tables_for_people_say_the_same_as_the_json(horolog: Horolog) -> None:
    job = horolog.within("job", "register", "ping", "--every", "86400", "--json").json
    run = horolog.within("job", "trigger", job["id"], "--json").json
    for arguments in (["occurrence", "list"], ["occurrence", "show", run["id"]]):
        text = horolog.within(*arguments).out
        assert run["id"] in text
        assert "scheduled" in text
    assert "no dead letters" in horolog.within("dead-letters", "list").out
    assert "\x1b[" not in horolog("job", "list").out
