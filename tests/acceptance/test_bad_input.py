"""What cannot be is refused in one clear line, with the right exit status, and leaves no event."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.acceptance.conftest import Horolog

from horolog import Every, InvalidPayload, InvalidSchedule, Once, Scheduler
from horolog.infrastructure.postgres.database import Database

LATER = "2999-01-01T00:00:00+00:00"
BIG = json.dumps({"blob": "x" * 200_000})
NOBODY = "0192f0c1-7a00-8abc-9def-0123456789ab"

REFUSED = {
    "a payload that is not JSON": (
        ["job", "register", "echo", "--at", LATER, "--payload", "{not json"],
        "--payload '{not json' is not JSON",
    ),
    "a payload that is no object": (
        ["job", "register", "echo", "--at", LATER, "--payload", "[1, 2]"],
        "takes an object",
    ),
    "a minute that does not exist": (
        ["job", "register", "echo", "--cron", "61 * * * *", "--zone", "UTC"],
        "minute field '61'",
    ),
    "a cron expression that can never fire": (
        ["job", "register", "echo", "--cron", "0 0 30 2 *", "--zone", "UTC"],
        "30",
    ),
    "a zone that does not exist": (
        ["job", "register", "echo", "--cron", "0 2 * * *", "--zone", "Mars/Phobos"],
        "'Mars/Phobos'",
    ),
    "a datetime without a zone": (
        ["job", "register", "echo", "--at", "2999-01-01T00:00:00"],
        "2999-01-01T00:00:00 has no offset",
    ),
    "a time that is none": (["job", "register", "echo", "--at", "tomorrow"], "'tomorrow'"),
    "a one-off in the past": (
        ["job", "register", "echo", "--at", "2020-01-01T00:00:00+00:00"],
        "Once(at='2020-01-01T00:00:00Z') has no fire time after",
    ),
    "an interval of nothing": (["job", "register", "echo", "--every", "0"], "0"),
    "a name that no handler can have": (["job", "register", "a b", "--every", "2"], "'a b'"),
    "a retry budget of nothing": (
        ["job", "register", "echo", "--every", "2", "--max-attempts", "0"],
        "max_attempts=0",
    ),
    "a job that does not exist": (["job", "show", NOBODY], NOBODY),
    "a key that nobody has": (["job", "pause", "no-such-key"], "no-such-key"),
    "an occurrence that does not exist": (["occurrence", "show", NOBODY], NOBODY),
    "an id that is none": (["occurrence", "show", "xyz"], "'xyz'"),
    "a replay of what is no dead letter": (["dead-letters", "replay", NOBODY], NOBODY),
    "a command on a cancelled job": (["job", "pause", "cancelled"], "it is cancelled"),
    "a trigger of a cancelled job": (["job", "trigger", "cancelled"], "it is cancelled"),
    "the same key for another job": (
        ["job", "register", "echo", "--every", "7", "--key", "taken"],
        "give --replace to change that job",
    ),
    "a payload nested beyond measure": (
        ["job", "register", "echo", "--at", LATER, "--payload", '{"a":' * 20_000],
        "is not JSON",
    ),
    "a version that has passed": (
        ["job", "pause", "taken", "--expected-version", "7"],
        "version 1, not at 7",
    ),
}

WRONG_USAGE = {
    "a command with a slip": (["job", "regster"], "did you mean register"),
    "an option with a slip": (["job", "list", "--statsu", "active"], "--status"),
    "a cron expression without its clock": (
        ["job", "register", "echo", "--cron", "0 2 * * *"],
        "--cron needs --zone",
    ),
    "two schedules": (
        ["job", "register", "echo", "--every", "2", "--at", LATER],
        "--every and --at",
    ),
    "no schedule": (["job", "register", "echo"], "given: none"),
    "a URL of something else": (
        ["job", "list", "--database-url", "mysql://localhost/x"],
        "mysql://localhost/x",
    ),
    "a moment before now": (["job", "register", "echo", "--in", "-5"], "--in"),
    "no events at all": (["log", "--limit", "0"], "--limit"),
    "no jobs at all": (["job", "list", "--limit", "0"], "--limit"),
    "no occurrences at all": (["occurrence", "list", "--limit", "0"], "--limit"),
    "no partitions": (["migrate", "--partitions", "0"], "partitions=0"),
    "a namespace of Postgres's own": (["migrate", "--namespace", "pg_x"], "'pg_x'"),
    "a setting that no scanner has": (
        ["scanner", "--set", "leese_s=5"],
        "leese_s: a scanner has no such setting; did you mean lease_s?",
    ),
    "a duration with a unit": (
        ["job", "register", "echo", "--every", "5m"],
        "'5m' is no number of seconds: write 300",
    ),
    "a namespace that cannot be one": (["job", "list", "--namespace", "A-b"], "'A-b'"),
}


@pytest.fixture
def populated(horolog: Horolog, scheduler: Scheduler) -> Horolog:
    scheduler.register("echo", schedule=Every(86_400), key="taken")
    scheduler.cancel(scheduler.register("echo", schedule=Every(86_400), key="cancelled").id)
    return horolog


def one_line(err: str) -> str:
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err
    return lines[0]


def test_what_is_refused_says_why_in_one_line_and_leaves_no_event(
    populated: Horolog, scheduler: Scheduler
) -> None:
    before = scheduler.log()
    for arguments, words in REFUSED.values():
        answer = populated.within(*arguments, status=1)
        assert words in one_line(answer.err)
        assert answer.out == ""
    assert scheduler.log() == before


def test_no_traceback_reaches_a_terminal(populated: Horolog) -> None:
    arguments, words = REFUSED["a payload that is not JSON"]
    assert words in one_line(populated(*arguments, status=1).err)
    arguments, words = WRONG_USAGE["an option with a slip"]
    assert words in one_line(populated(*arguments, status=2).err)


def test_wrong_usage_names_what_is_nearest(populated: Horolog, scheduler: Scheduler) -> None:
    before = scheduler.log()
    for arguments, words in WRONG_USAGE.values():
        assert words in one_line(populated.within(*arguments, status=2).err)
    assert scheduler.log() == before


def test_a_payload_over_the_limit_is_refused_before_anything_is_written(
    populated: Horolog, scheduler: Scheduler, tmp_path: Path
) -> None:
    before = scheduler.log()
    (tmp_path / "big.json").write_text(BIG)
    answer = populated(
        "job", "register", "echo", "--every", "9", "--payload", "@big.json", status=1
    )
    assert "200" in one_line(answer.err)
    with pytest.raises(InvalidPayload):
        scheduler.register("echo", schedule=Every(9), payload={"blob": "x" * 200_000})
    with pytest.raises(InvalidPayload):
        scheduler.register("echo", schedule=Every(9), payload={"what": object()})
    assert scheduler.log() == before


def test_a_naive_datetime_and_a_past_one_off_are_refused_by_the_api(scheduler: Scheduler) -> None:
    with pytest.raises(InvalidSchedule):
        Once(datetime(2999, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidSchedule):
        scheduler.register("echo", schedule=Once(datetime.now(UTC) - timedelta(days=1)))
    assert scheduler.log() == []


def test_a_service_that_is_away_is_status_3(horolog: Horolog) -> None:
    away = "postgresql://nobody:secret@127.0.0.1:1/nothing"
    line = one_line(horolog("job", "list", "--database-url", away, status=3).err)
    assert "127.0.0.1" in line
    assert "secret" not in line
    nowhere = str(horolog.folder / "empty")
    answer = horolog("job", "list", "--home", nowhere, status=3, HOROLOG_DATABASE_URL="")
    assert "horolog dev" in one_line(answer.err)


def test_a_database_without_the_schema_says_what_to_run(horolog: Horolog) -> None:
    for arguments in (["job", "list"], ["verify"], ["doctor"], ["log"]):
        answer = horolog.within(*arguments, "--namespace", "never_made", status=1)
        assert "horolog migrate" in answer.err + answer.out


def test_a_schema_newer_than_the_code_is_refused(
    horolog: Horolog, database_url: str, namespace: str
) -> None:
    database = Database(database_url, namespace)
    statement = "INSERT INTO :schema.migrations (number, name, digest) VALUES (9999, 'future', '')"
    database.query(database.sql(statement))
    try:
        answer = horolog("job", "list", status=1)
        assert "upgrade horolog" in one_line(answer.err)
    finally:
        database.query(database.sql("DELETE FROM :schema.migrations WHERE number = 9999"))
        database.close()


def test_doctor_tells_of_a_master_key_that_is_none(
    horolog: Horolog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(horolog.environment, "HOROLOG_MASTER_KEY", "x")
    told = horolog.within("doctor", status=1).out
    assert "! key 1 of HOROLOG_MASTER_KEY or HOROLOG_MASTER_KEY_FILE is no master key" in told
