"""`horolog retention` and `horolog verify --chain` from outside."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.acceptance.conftest import Horolog, eventually

from horolog import Every, Scheduler
from horolog.infrastructure.postgres.database import Database

OLD = datetime.now(UTC) - timedelta(days=100)


def make_months(horolog: Horolog, behind: int) -> None:
    """As they are there where it has been running for so long."""
    environment = horolog.environment
    database = Database(environment["HOROLOG_DATABASE_URL"], environment["HOROLOG_NAMESPACE"])
    database.query(database.sql("SELECT :schema.create_month_partitions(%s, 3)"), (behind,))
    database.close()


def test_old_occurrences_leave_and_the_rest_goes_on(
    horolog: Horolog, scheduler: Scheduler, tmp_path: Path
) -> None:
    make_months(horolog, 6)
    horolog.start_scanner_and_worker()
    job = scheduler.register("ping", schedule=Every(1))
    old = scheduler.trigger(job.id, at=OLD)
    eventually(lambda: scheduler.occurrence(old.id).state == "succeeded")
    archive = tmp_path / "archive"
    found = horolog("retention", "--older-than", "40", "--dry-run", "--json").json
    (month,) = [month for month in found["months"] if month["occurrences"]]
    assert (month["month"], month["events"], month["pruned"]) == (f"{OLD:%Y-%m}", 3, False)
    said = horolog("retention", "--older-than", "40", "--archive", str(archive)).out
    assert f"{OLD:%Y-%m}  pruned: 1 occurrences, 3 events, archived in occurrences-" in said
    assert len(list(archive.iterdir())) == 1
    answer = horolog("occurrence", "show", str(old.id), status=1)
    assert "no occurrence" in answer.err
    assert horolog("projection", "rebuild", "--json").json["differences"] == []
    count = horolog.verify()["succeeded"]
    eventually(lambda: horolog.verify()["succeeded"] > count + 2)
    assert [event.topic for event in scheduler.history(job.id)][-1] == "job.triggered.1"
    horolog("verify", "--chain")


def test_a_checkpoint_is_written_and_held_against_the_log(
    horolog: Horolog, scheduler: Scheduler, tmp_path: Path
) -> None:
    scheduler.register("ping", schedule=Every(60))
    kept = tmp_path / "checkpoint.json"
    said = horolog("verify", "--checkpoint", str(kept)).out
    assert "the chain holds" in said
    assert f"checkpoint written to {kept}" in said
    scheduler.register("ping", schedule=Every(60))
    found = horolog("verify", "--against", str(kept), "--json").json
    assert (found["links"], found["events"], found["breaks"]) == (2, 2, [])
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"digest": "00" * 32}))
    answer = horolog("verify", "--against", str(kept), status=1)
    assert "the digest is not the checkpoint's" in answer.out
    assert "the chain is broken in 1 place" in answer.out
    assert "is a directory" in horolog("verify", "--against", str(tmp_path), status=2).err
