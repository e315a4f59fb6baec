"""Rows are read as long before their time as a read takes, and waited for until it has come."""

import asyncio

import pytest

from horolog.application.scanner.clock import DatabaseTime
from horolog.application.scanner.reading_ahead import MOST_US, ReadingAhead


class HandClock:
    """Moves by ``part`` of what is waited for: some timers come too early."""

    def __init__(self, part: float = 1.0) -> None:
        self.at = 1_000.0
        self._part = part
        self.waits = 0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        assert not event.is_set()
        self.waits += 1
        self.at += timeout_s * self._part


def ahead(clock: HandClock) -> tuple[ReadingAhead, DatabaseTime]:
    time = DatabaseTime(clock)
    time.observe(clock.at, clock.at, 5_000_000)
    return ReadingAhead(clock, time), time


def test_the_lead_is_what_reads_have_needed_of_late_and_has_a_bound() -> None:
    reading, _ = ahead(HandClock())
    assert reading.lead_us == 0
    for _ in range(50):
        reading.took(0.000_8)
    assert 750 < reading.lead_us <= 800
    reading.took(60.0)
    assert reading.lead_us <= 800 + MOST_US / 8, "one that was slow says little of the next"
    for _ in range(100):
        reading.took(60.0)
    assert reading.lead_us <= MOST_US


@pytest.mark.parametrize("part", [1.0, 0.4, 0.0])
async def test_what_was_read_early_waits_until_it_is_due(part: float) -> None:
    clock = HandClock(part)
    reading, time = ahead(clock)
    await reading.until(5_000_000 + 1_500)
    if part:
        assert time.now_us() >= 5_000_000 + 1_500
    assert clock.waits < 100, "a clock that stands still is not waited for"


async def test_what_is_due_is_not_waited_for() -> None:
    clock = HandClock()
    reading, _ = ahead(clock)
    await reading.until(4_000_000)
    assert clock.waits == 0
