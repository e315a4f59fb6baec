"""Clocks that jump: the database's is the only time there is, and steps of it do no harm.

The wall clock of a scanner's machine is read nowhere. Its steady clock leaps when the machine was
suspended; the database's own may be stepped by whoever keeps it.
"""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from horolog.application.scanner.leadership import View
from horolog.infrastructure.clock import SystemClock
from horolog.infrastructure.postgres.leases import PostgresLeases
from horolog.interface.processes import scanner as process

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage

SETTINGS: dict[str, Any] = {"lease_s": 1.5, "settle_s": 0.1}


class LeapingClock(SystemClock):
    """A machine's clock that a test moves."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


async def test_a_machine_that_was_suspended_fires_nothing_early_and_goes_on(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LeapingClock()
    monkeypatch.setattr(process, "SystemClock", lambda: clock)
    later = stage.register(20, in_s=30 * 60)
    async with stage.scanner(**SETTINGS, horizon_s=3_600) as signals:
        await asyncio.wait_for(signals.reached("elected", 8), 10)
        await asyncio.wait_for(signals.reached("swept", 2), 10)
        for leap_s in (3_600.0, 8 * 3_600.0):
            clock.ahead_s += leap_s
            soon = stage.register(20, in_s=1)
            await stage.until(lambda due=soon: due <= stage.claimed_jobs(), 5)
    assert signals.counts["clock_stepped"] >= 1
    assert not later & stage.claimed_jobs()
    assert_never_early(stage)


async def test_steps_of_the_databases_clock_lose_and_double_nothing(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Back by two seconds again and again, and forward as far: as its leader reads it."""
    renew = PostgresLeases.renew
    ahead_us = [0, -2_000_000, 0, -2_000_000, -4_000_000, 0]
    read: list[int] = []

    async def stepped(self: PostgresLeases, *args: Any, **kwargs: Any) -> View:
        view = await renew(self, *args, **kwargs)
        moved = ahead_us[len(read) % len(ahead_us)]
        read.append(moved)
        return View(view.now_us + moved, view.alive, view.leases)

    monkeypatch.setattr(PostgresLeases, "renew", stepped)
    jobs: set[Any] = set()
    async with stage.scanner(**SETTINGS) as signals:
        for tenth in range(30):
            jobs |= stage.register(4, in_s=tenth / 10)
        await stage.until(lambda: len(stage.claimed_jobs()) == len(jobs), 20)
        await asyncio.wait_for(signals.reached("published", len(jobs)), 10)
        await asyncio.wait_for(signals.reached("clock_stepped", 2), 10)
    await stage.check_claims(jobs)


def assert_never_early(stage: "Stage") -> None:
    rows: list[tuple[datetime, datetime]] = stage.ask(
        "SELECT recorded_at, (state ->> 'fire_time')::timestamptz FROM :schema.log"
        " WHERE topic = 'occurrence.claimed.1'"
    )
    assert rows
    assert all(fire_time <= recorded_at for recorded_at, fire_time in rows)
    assert all(fire_time <= datetime.now(UTC) for _, fire_time in rows)
