"""Deadlines that are missed while no worker lives: the scanner says so, once for each."""

from typing import Any

import pytest

from horolog.application.scanner import watching
from horolog.infrastructure.postgres.health import PostgresHealth

FAST = {"lease_s": 2.0, "sweep_s": 0.5, "look_interval_s": 0.5, "watch_interval_s": 0.1}


async def test_runs_that_nobody_begins_and_jobs_without_success_are_told_once(stage: Any) -> None:
    (late,) = stage.register(1, owner="team", start_within=0.2, finish_within=0.4)
    (idle,) = stage.register(1, in_s=3600, expect_success_by=0.3)
    stage.register(1)
    async with stage.scanner(**FAST) as signals:
        await signals.reached("deadline_missed", 3)
    # Another leader looks at everything once more, and has nothing new to say.
    async with stage.scanner(**FAST) as signals:
        await signals.reached("looked", 4)
    missed = {e.event.deadline: e.event for e in stage.log.log(topics=["deadline.missed.1"])}
    assert set(missed) == {"start", "finish", "success"}
    start, finish, success = missed["start"], missed["finish"], missed["success"]
    assert (start.job_id, start.name, start.owner) == (late, "a.b", "team")
    assert start.occurrence_id == finish.occurrence_id is not None
    assert round((finish.due - start.due).total_seconds(), 6) == 0.2
    assert (success.job_id, success.occurrence_id) == (idle, None)
    assert PostgresHealth(stage.database).store_health().missed_deadlines == 3


async def test_a_miss_that_comes_to_light_after_later_ones_is_told(stage: Any) -> None:
    stage.register(1, start_within=0.2)
    async with stage.scanner(**FAST) as signals:
        await signals.reached("deadline_missed", 1)
        (waited,) = stage.register(1, ago_s=60.0, start_within=0.2)
        await signals.reached("deadline_missed", 2)
    first, second = (e.event for e in stage.log.log(topics=["deadline.missed.1"]))
    assert second.job_id == waited
    assert second.due < first.due


async def test_misses_of_one_instant_are_told_however_many(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PAGE", 3)
    late = stage.register(8, start_within=0.2)
    async with stage.scanner(**FAST) as signals:
        await signals.reached("deadline_missed", 8)
    told = [e.event for e in stage.log.log(topics=["deadline.missed.1"])]
    assert sorted(event.job_id for event in told) == sorted(late)
    assert len({event.due for event in told}) == 1
