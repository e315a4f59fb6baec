"""What happens is seen as it happens: the log in a second terminal, and the log in SQL."""

import json
from datetime import datetime

from tests.acceptance.conftest import Horolog

from horolog import Every, Scheduler
from horolog.infrastructure.postgres.database import Database


def test_follow_sees_each_run_within_a_second_of_its_fire_time(horolog: Horolog) -> None:
    horolog.start_scanner_and_worker()
    log = horolog.start("log", "--follow", "--json")
    horolog("job", "register", "ping", "--every", "2")
    for _ in range(2):
        claimed = json.loads(log.wait_for_line(lambda line: "occurrence.claimed" in line))
        done = json.loads(log.wait_for_line(lambda line: "occurrence.succeeded" in line))
        fire_time = datetime.fromisoformat(claimed["data"]["fire_time"])
        seen_after = datetime.fromisoformat(done["recorded_at"]) - fire_time
        assert seen_after.total_seconds() < 1.0


def test_follow_chooses_by_topic_and_goes_on_after_a_position(horolog: Horolog) -> None:
    first = horolog("job", "register", "ping", "--every", "86400", "--json").json
    horolog("job", "pause", first["id"], "--reason", "tea")
    horolog("job", "resume", first["id"])
    paused = horolog("log", "--topic", "job.paused.1", "--json").out.splitlines()
    assert [json.loads(line)["reason"] for line in paused] == ["tea"]
    position = json.loads(paused[0])["position"]
    later = horolog("log", "--after", str(position), "--json").out.splitlines()
    assert {json.loads(line)["topic"] for line in later} <= {
        "job.resumed.1",
        "job.fires_skipped.1",
    }
    assert "job.paused.1" in horolog("log", "--topic", "no.such", status=1).err
    followed = horolog("log", "--follow", "--after", "0", "--limit", "3", "--json").out
    assert [json.loads(line)["position"] for line in followed.splitlines()] == [1, 2, 3]


def test_sql_alone_answers_who_changed_this_job_when_and_why(
    horolog: Horolog, scheduler: Scheduler, database_url: str, namespace: str
) -> None:
    job = scheduler.register("echo", schedule=Every(86_400), reason="a new customer")
    scheduler.pause(job.id, reason="they are on holiday")
    horolog(
        "job", "update", str(job.id), "--owner", "team-a", "--actor", "ann", "--reason", "moved"
    )

    database = Database(database_url, namespace)
    rows = database.query(
        database.sql(
            "SELECT actor, reason, topic, recorded_at, state FROM :schema.log"
            " WHERE stream = %s ORDER BY position"
        ),
        (job.id,),
    )
    database.close()
    assert [row[:3] for row in rows] == [
        ("tester", "a new customer", "job.registered.1"),
        ("tester", "they are on holiday", "job.paused.1"),
        ("ann", "moved", "job.policies_changed.1"),
    ]
    assert rows[0][4]["definition"]["name"] == "echo"
    assert rows[2][4]["changes"] == {"owner": "team-a"}
    assert all(isinstance(row[3], datetime) and row[3].tzinfo for row in rows)
