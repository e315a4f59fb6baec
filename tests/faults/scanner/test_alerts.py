"""Alerts on real servers: no worker lives, two scanners do, and each notice goes out once."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.faults.scanner.conftest import ME

from horolog import Retry, Scheduler
from horolog.application.decision import decide_on_fires, decide_on_occurrence
from horolog.application.verify import verify
from horolog.domain.ids import occurrence_id
from horolog.domain.occurrence import decide_claim, decide_failure, ordered
from horolog.domain.occurrence_events import Attempted, OccurrenceEvent
from horolog.infrastructure.postgres.health import PostgresHealth
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.postgres.states import PostgresStates

FAST = {"lease_s": 1.0, "settle_s": 0.1, "sweep_s": 0.5, "look_interval_s": 0.5,
        "watch_interval_s": 0.1, "alert_interval_s": 0.1}  # fmt: skip

TAKES = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


class Told:
    """What a command was told, and the rule's values to have it told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "told"
        self.command = [sys.executable, "-c", TAKES, str(self.file)]

    @property
    def notices(self) -> list[dict[str, Any]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [json.loads(line) for line in lines]

    def states(self, condition: str) -> list[str]:
        return [one["state"] for one in self.notices if one["condition"] == condition]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def bury(stage: Any, count: int, owner: str | None) -> list[str]:
    """Dead letters of an owner, as a scanner and a worker would have made them."""
    jobs = PostgresStates(stage.database).jobs(list(stage.register(count, owner=owner)))
    letters: list[str] = []
    for job in jobs.values():
        fire = job.next_fire
        assert fire is not None
        run = ordered(occurrence_id(job.id, fire), job.id, job.partition, fire, "schedule")
        claim = decide_claim(run, job_version=job.version, token=1, window_s=30, origin=ME)
        claim = claim.model_copy(update={"fires": 1, "next_fire": None})
        claiming, _, (run,) = decide_on_fires(job, fire, [(run, claim)], [])
        begins: list[OccurrenceEvent] = [Attempted(attempt=1, lease=30, **ME.fields())]
        beginning, run = decide_on_occurrence(run, begins)
        failed = decide_failure(
            run, kind="permanent", error="no", seconds=0.0, retry=Retry(), now=fire, owner=owner,
            origin=ME,
        )  # fmt: skip
        ending, run = decide_on_occurrence(run, failed, name="a.b")
        for decision in (claiming, beginning, ending):
            assert stage.log.append([decision]).verdicts == ["accepted"]
        letters.append(str(run.id))
    return letters


def counts(stage: Any) -> Counter[str]:
    return Counter(
        row[0].split(".")[1]
        for row in stage.ask("SELECT topic FROM :schema.log WHERE topic LIKE 'alert.%'")
    )


async def test_depth_is_told_once_by_two_scanners_repeated_and_resolved(
    stage: Any, told: Told
) -> None:
    letters = bury(stage, 3, "team")
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert("team", dead_letters=3, repeat=1.5, command=told.command)
        scheduler.set_alert(dead_letters=2)
        async with stage.scanner(**FAST) as one, stage.scanner(**FAST) as two:
            await stage.until(lambda: "repeated" in told.states("dead_letter_depth"))
            (alert,) = scheduler.alerts()
            assert (alert.owner, alert.condition, alert.value) == ("team", "dead_letter_depth", 3)
            assert PostgresHealth(stage.database).store_health().alerts[0].owner == "team"
            scheduler.discard(letters[0], reason="enough")
            await stage.until(lambda: "resolved" in told.states("dead_letter_depth"))
            await stage.until(lambda: counts(stage)["delivered"] == len(told.notices))
            assert one.counts["alert_raised"] + two.counts["alert_raised"] == 1
        assert scheduler.alerts() == []
        states = told.states("dead_letter_depth")
        assert states[0] == "raised"
        assert states[-1] == "resolved"
        assert set(states[1:-1]) == {"repeated"}
        assert len({one["id"] for one in told.notices}) == len(told.notices)
        assert [e.topic for e in scheduler.alert_history(owner="team")][:2] == [
            "alert_rule.set.1", "alert.raised.1",
        ]  # fmt: skip
    # The dead letters were made by hand; the streams of alerts are as all streams are.
    assert 1 not in {one.invariant for one in verify(PostgresLogScan(stage.database)).violations}


async def test_a_rule_that_cannot_be_read_silences_no_other(stage: Any, told: Told) -> None:
    bury(stage, 1, "team")
    stage.ask(
        "INSERT INTO :schema.alert_rules (owner, dead_letters, deadlines, rule, changed_by)"
        """ VALUES ('eve', 1, true, '{"no": ["such", "rule"]}', 'eve')"""
    )
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert("team", dead_letters=1, command=told.command)
        async with stage.scanner(**FAST):
            await stage.until(lambda: "raised" in told.states("dead_letter_depth"))
        assert [one.owner for one in scheduler.alert_rules()] == ["team"]


async def test_age_and_deadlines_are_told_while_no_worker_lives(stage: Any, told: Told) -> None:
    bury(stage, 1, None)
    stage.register(1, in_s=0.0, owner="late", start_within=0.2)
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert(dead_letter_age=0.5, deadlines=True, command=told.command)
        async with stage.scanner(**FAST):
            await stage.until(lambda: len(told.notices) == 2)
            await stage.until(lambda: counts(stage)["delivered"] == 2)
            assert {(one["condition"], one["owner"]) for one in told.notices} == {
                ("dead_letter_age", None), ("deadline", "late"),
            }  # fmt: skip
            scheduler.remove_alert(reason="holiday")
            await stage.until(lambda: counts(stage)["resolved"] == 2)
        assert len(told.notices) == 2


async def test_a_way_that_fails_is_in_the_log_without_its_secret_and_tried_again(
    stage: Any, tmp_path: Path
) -> None:
    bury(stage, 1, "team")
    flag, secret = tmp_path / "flag", "s3cret"
    program = "import os, sys; sys.exit(0 if os.path.exists(sys.argv[1]) else 7)"
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert(
            "team",
            dead_letters=1,
            command=[sys.executable, "-c", program, str(flag), secret],
            webhook=f"http://127.0.0.1:1/{secret}",
        )
        async with stage.scanner(**FAST):
            await stage.until(lambda: counts(stage)["delivery_failed"] == 2)
            (alert,) = scheduler.alerts()
            assert alert.unreached == ["command", "webhook"]
            flag.touch()
            await stage.until(lambda: counts(stage)["delivered"] == 1)
        said = stage.ask("SELECT convert_from(state, 'UTF8') FROM :schema.job_events")
        assert not any(secret in row[0] for row in said)
        errors = [e.to_dict().get("error") or e.to_dict()["data"].get("error")
                  for e in scheduler.alert_history()]  # fmt: skip
        assert "it ended with exit status 7" in errors


async def test_a_scanner_that_dies_between_the_event_and_its_notice_leaves_it_to_the_next(
    stage: Any, told: Told
) -> None:
    bury(stage, 1, "team")
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert("team", dead_letters=1, command=told.command)
    with stage.child("alert_raised", **FAST) as dying:
        assert await asyncio.to_thread(dying.wait, 20) == 9
    assert (counts(stage)["raised"], told.notices) == (1, [])
    async with stage.scanner(**FAST):
        await stage.until(lambda: counts(stage)["delivered"] == 1)
    assert (counts(stage)["raised"], len(told.notices)) == (1, 1)


async def test_without_a_rule_a_look_reads_no_dead_letter(stage: Any) -> None:
    """However many there are: rows that were read are counted, by Postgres."""
    bury(stage, 3, "team")
    read = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables"
    of = stage.database.sql(f"{read} WHERE schemaname = :literal AND relname = %s")
    look = stage.database.sql("SELECT * FROM :schema.alerts_seen(25, 1000)")
    with stage.database.session() as connection, connection.transaction():
        connection.execute(look)
        rows = {
            table: connection.execute(of, (table,)).fetchone()[0]
            for table in ("dead_letters", "executions", "jobs", "job_events")
        }
    assert rows == {"dead_letters": 0, "executions": 0, "jobs": 0, "job_events": 0}
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        scheduler.set_alert("team", dead_letters=3)
    with stage.database.session() as connection, connection.transaction():
        connection.execute(look)
        assert connection.execute(of, ("dead_letters",)).fetchone()[0] >= 3
