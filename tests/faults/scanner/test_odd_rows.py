"""Rows that no release has written (a hand that slipped, a broken one) stop themselves alone."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import sql

from horolog import Scheduler

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage

ODD: list[dict[str, Any]] = [
    {"attempt": 2**31 - 1},
    {"version": 2**31 - 1},
    {"attempt": -5},
    {"fires": 999},
    {"state": "mystery"},
    {"kind": "mystery", "attempt": 1},
    {"fire_time": "4000-01-01 BC"},
    {"due_at": "4000-01-01 BC"},
    {"state": "running", "look": True, "attempt": 2**31 - 1, "failures": 2**31 - 1},
    {"state": "running", "look": True, "version": 2**31 - 1},
    {"state": "running", "look": True, "attempt": -1, "version": -1},
    {"state": "mystery", "look": True},
    {"state": "claimed", "look": True, "due_at": "4000-01-01 BC"},
]


async def test_what_cannot_be_decided_kept_or_read_stops_no_other_row_and_not_its_job(
    stage: "Stage",
) -> None:
    with Scheduler(stage.database_url, namespace=stage.namespace) as scheduler:
        (job,) = stage.register(1, in_s=1.0)
        ahead = datetime.now(UTC) + timedelta(days=9)
        for odd in ODD:
            run = scheduler.trigger(job, at=ahead).id
            values = {"due_at": datetime.now(UTC)} | odd
            said = sql.SQL(", ").join(
                sql.SQL("{} = {}").format(sql.Identifier(name), value)
                for name, value in values.items()
            )
            stage.database.query(
                stage.database.sql("UPDATE :schema.next_runs SET ")
                + said
                + sql.SQL(" WHERE id = {}").format(run)
            )
    async with stage.scanner(look_interval_s=0.1) as signals:
        jobs = stage.register(20, in_s=-1) | {job}
        await stage.until(lambda: signals.counts["put_aside"] >= len(ODD) - 3)
        await stage.until(lambda: jobs <= stage.claimed_jobs())
        later = stage.register(5, in_s=0.1)
        await stage.until(lambda: later <= stage.claimed_jobs())


def test_an_instant_that_is_none_is_not_kept(stage: "Stage") -> None:
    (job,) = stage.register(1, in_s=60)
    for column in ("due_at", "fire_time"):
        with (
            psycopg.connect(stage.database_url) as connection,
            pytest.raises(psycopg.errors.CheckViolation),
        ):
            connection.execute(
                stage.database.sql(f"UPDATE :schema.next_runs SET {column} = '-infinity'")
                + sql.SQL(" WHERE id = {}").format(job)
            )
