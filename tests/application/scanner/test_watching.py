"""Watching by hand: what comes to light late is said, each miss once, a page at a time."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from horolog.application.decision import Decision
from horolog.application.scanner import watching
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.application.scanner.watching import Miss, Watching, whole
from horolog.domain.log_events import DeadlineMissed

START = datetime(2027, 1, 1, tzinfo=UTC)
JOB = UUID(int=1)


class HandClock:
    def monotonic(self) -> float:
        return 0.0

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        raise AssertionError("nobody waits here")


class Database:
    """Misses by what was late; the log that takes each of them once."""

    def __init__(self) -> None:
        self.misses: list[Miss] = []
        self.said: list[UUID] = []
        self.appended = 0
        self.reads = 0

    def miss(self, run: int, due_s: float) -> UUID:
        identity, due = UUID(int=run), START + timedelta(seconds=due_s)
        self.misses.append(Miss("start", JOB, "a.b", None, due, identity, due))
        return identity

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        self.reads += 1
        found = sorted((m for m in self.misses if m.due > after), key=lambda m: m.due)
        return whole(found, limit)

    async def append(self, decisions: Sequence[Decision], fences: Any = None) -> Any:
        self.appended += len(decisions)
        verdicts: list[str] = []
        for decision in decisions:
            event = decision.events[0].event
            assert isinstance(event, DeadlineMissed)
            assert event.occurrence_id is not None
            new = event.occurrence_id not in self.said
            verdicts.append("accepted" if new else "conflict")
            self.said += [event.occurrence_id] * new
        return SimpleNamespace(verdicts=verdicts)


class World:
    def __init__(self) -> None:
        self.database = Database()
        self.territory = Territory("scanner")
        self.lead()
        self.settings = ScannerSettings()
        self.watching = Watching(
            self.territory,
            misses=self.database,
            appends=self.database,
            clock=HandClock(),
            settings=self.settings,
            signals=Signals(),
        )

    def lead(self) -> None:
        self.territory.gain(Term(0, 1, trusted_until=1_000.0, published=0))

    async def look(self) -> int:
        """Steps up to the next pause; how many."""
        steps = 1
        while await self.watching.step() == 0.0:
            steps += 1
            assert steps < 100, "it never pauses"
        return steps


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PAGE", 3)


async def test_a_miss_that_comes_to_light_after_later_ones_is_said(world: World) -> None:
    late = world.database.miss(2, due_s=60.0)
    await world.look()
    waited = world.database.miss(3, due_s=10.0)  # its predecessor has just been claimed
    await world.look()
    assert world.database.said == [late, waited]


async def test_what_lasts_is_said_once_and_costs_one_read_at_each_look(world: World) -> None:
    world.database.miss(2, due_s=60.0)
    world.database.miss(3, due_s=61.0)
    for _ in range(5):
        assert await world.look() == 1
    assert (world.database.appended, world.database.reads) == (2, 5)


async def test_misses_of_one_instant_are_all_said_however_many(world: World) -> None:
    runs = {world.database.miss(2 + number, due_s=60.0) for number in range(10)}
    await world.look()
    assert set(world.database.said) == runs


async def test_of_many_the_first_look_tells_all_and_each_new_one_is_told_at_the_next(
    world: World,
) -> None:
    runs = {world.database.miss(2 + number, due_s=float(number)) for number in range(20)}
    await world.look()
    assert set(world.database.said) == runs
    new = [world.database.miss(100 + number, due_s=100.0 + number) for number in range(7)]
    await world.look()
    assert world.database.said[20:] == new


async def test_of_many_one_that_comes_to_light_late_is_told_within_a_round(world: World) -> None:
    for number in range(20):
        world.database.miss(2 + number, due_s=float(number))
    await world.look()
    world.database.reads = 0
    waited = world.database.miss(100, due_s=3.5)
    looks = 20 // 3 + 1
    for _ in range(looks):
        await world.look()
    assert waited in world.database.said
    assert world.database.reads <= 2 * looks
    assert world.database.appended == 21


async def test_what_is_no_longer_missed_is_forgotten(world: World) -> None:
    world.database.miss(2, due_s=1.0)
    await world.look()
    world.database.misses.clear()
    await world.look()
    await world.look()
    met = [value for name, value in vars(world.watching).items() if name.startswith("_met")]
    assert met == [set(), set()]


async def test_who_leads_again_says_everything_once_more_and_the_log_refuses_it(
    world: World,
) -> None:
    run = world.database.miss(2, due_s=1.0)
    await world.look()
    world.territory.lose(0)
    await world.look()
    world.lead()
    await world.look()
    assert (world.database.said, world.database.appended) == ([run], 2)
