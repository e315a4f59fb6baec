"""The sweep over an index in memory: bounded pages, nothing missed, nobody in the way."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.clock import DatabaseTime
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.sweep import Range, Sweep
from horolog.application.scanner.territory import Term, Territory
from horolog.application.scanner.wheel import Entry, Wheel

NOW_S = 1_000.0


class HandClock:
    def __init__(self) -> None:
        self.at = NOW_S

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


class Index:
    """Rows by id; what is claimed is taken out by the test."""

    def __init__(self) -> None:
        self.rows: dict[UUID, Entry] = {}
        self.queries: list[int] = []
        self.clock: HandClock | None = None
        """What each query takes ``takes_s`` of."""
        self.takes_s = 0.0

    def put(self, due_s: float, number: int, partition: int = 0, queue: str = "") -> Entry:
        entry = Entry(int(due_s * 1e6), UUID(int=number), partition, queue)
        self.rows[entry.id] = entry
        return entry

    async def fires(self, ranges: Sequence[Range], limit: int) -> list[list[Entry]]:
        pages = [
            sorted(
                row
                for row in self.rows.values()
                if row.partition == span.partition
                and (row.due_us, row.id) > (span.due_us, span.id)
                and row.due_us <= span.until_us
            )[:limit]
            for span in ranges
        ]
        self.queries.append(sum(len(page) for page in pages))
        if self.clock is not None:
            self.clock.at += self.takes_s
        return pages


class World:
    def __init__(self, settings: ScannerSettings, partitions: int = 1) -> None:
        self.clock = HandClock()
        self.time = DatabaseTime(self.clock)
        self.time.observe(NOW_S, NOW_S, int(NOW_S * 1e6))
        self.territory = Territory("me")
        self.rooms: dict[str, int] = {}
        self.agenda = Agenda(
            Wheel(capacity=settings.wheel_capacity),
            room=lambda queue, first: self.rooms.get(queue, 1_000),
            capacity=settings.due_capacity,
        )
        self.index = Index()
        self.index.clock = self.clock
        self.settings = settings
        self.sweep = Sweep(
            self.territory,
            self.agenda,
            index=self.index,
            clock=self.clock,
            time=self.time,
            settings=settings,
            signals=Signals(),
        )
        for number in range(partitions):
            self.territory.gain(Term(number, 1, 1e9, 0))

    async def read(self, most: int = 1_000) -> None:
        """Reads until there is nothing to read for now."""
        for _ in range(most):
            if await self.sweep.step() > 0:
                return
        raise AssertionError("the sweep does not come to rest")

    def claim(self, limit: int = 1_000) -> list[Entry]:
        """Draws what is due and takes it out of the index, as claims do."""
        drawn = self.agenda.draw(self.time.now_us(), limit, set(self.territory.terms))
        for entry in drawn:
            self.index.rows.pop(entry.id, None)
        self.agenda.settle(drawn)
        return drawn


async def test_what_no_notification_told_of_is_found_before_its_time_or_one_sweep_later() -> None:
    world = World(ScannerSettings())
    await world.read()
    lateness: list[float] = []
    for number in range(200):
        written = world.clock.at
        due_s = written + (number % 60) / 10
        world.index.put(due_s, number)
        while not world.claim():
            pause = await world.sweep.step()
            world.clock.at += min(pause, 0.05) or 0.01
            assert world.clock.at < written + 30
        lateness.append(world.clock.at - due_s)
    assert max(lateness) <= world.settings.sweep_s + 0.1
    punctual = [late for late in lateness if late < 0.06]
    assert len(punctual) > len(lateness) / 3, "what lies two sweeps ahead comes in time"


async def test_a_backlog_passes_through_in_bounded_pages_in_order() -> None:
    settings = ScannerSettings(claim_batch=100, read_batch=200, wheel_capacity=1_000)
    world = World(settings, partitions=4)
    for number in range(5_000):
        world.index.put(NOW_S - 5_000 + number, number, number % 4)
    claimed: list[Entry] = []
    for _ in range(500):
        await world.read()
        assert len(world.agenda) <= settings.wheel_capacity
        batch = world.claim(100)
        if not batch:
            break
        claimed += batch
    assert len(claimed) == 5_000
    assert max(world.index.queries) <= settings.read_batch
    for partition in range(4):
        of_partition = [entry for entry in claimed if entry.partition == partition]
        assert of_partition == sorted(of_partition)


async def test_rows_that_cannot_be_claimed_do_not_stand_in_the_way() -> None:
    world = World(ScannerSettings(claim_batch=16, read_batch=32, wheel_capacity=500))
    stuck = {world.index.put(NOW_S - 100, number).id for number in range(200)}
    wanted = world.index.put(NOW_S - 1, 999).id
    for _ in range(100):
        await world.read()
        drawn = world.agenda.draw(world.time.now_us(), 16, {0})
        world.agenda.settle(drawn)
        if wanted in {entry.id for entry in drawn}:
            return
        assert {entry.id for entry in drawn} <= stuck
    raise AssertionError("the row behind the stuck ones was not reached")


async def test_a_queue_that_nobody_works_at_hides_nothing_behind_it() -> None:
    """However much of it is due, and however little memory there is."""
    world = World(ScannerSettings(claim_batch=50, read_batch=200, wheel_capacity=400), partitions=4)
    world.rooms = {"dead": 0}
    for number in range(6_000):
        world.index.put(NOW_S - 900, number, number % 4, "dead")
    for number in range(6_000, 7_000):
        world.index.put(NOW_S - 600, number, number % 4, "live")
    claimed: list[Entry] = []
    passes_s = 0.0
    while len(claimed) < 1_000:
        pause = await world.sweep.step()
        assert world.agenda.waiting <= 2 * world.settings.due_capacity
        # The workers take 50 and then have enough for a while.
        world.rooms["live"] = 1_000 if len(world.index.queries) % 3 else 0
        claimed += world.claim(50)
        world.clock.at += pause or 0.01
        passes_s += pause
        assert len(world.index.queries) < 2_000
    assert {entry.queue for entry in claimed} == {"live"}
    # Gone through once from the beginning for each sweep; what is fetched later is fetched there.
    passes = 1 + (world.clock.at - NOW_S) / world.settings.sweep_s
    assert sum(world.index.queries) <= 7_000 * passes + 2 * 1_000
    soon = world.index.put(world.clock.at + 10, 30_000, 1, "live")
    while not world.claim():
        world.clock.at += min(await world.sweep.step() or 0.01, 0.05)
        assert world.clock.at < soon.due_us / 1e6 + 0.2, "what comes due later comes in time"


async def test_a_backlog_larger_than_memory_is_worked_off_in_order() -> None:
    world = World(ScannerSettings(claim_batch=50, read_batch=200, wheel_capacity=400), partitions=4)
    for number in range(5_000):
        world.index.put(NOW_S - 10_000 + number, number, number % 4, "slow")
    claimed: list[Entry] = []
    for turn in range(10_000):
        world.rooms["slow"] = 1_000 if turn % 3 == 0 else 0
        pause = await world.sweep.step()
        claimed += world.claim(50)
        world.clock.at += min(pause, 0.05) or 0.01
        if len(claimed) == 5_000:
            break
    assert len(claimed) == 5_000
    order = [entry.due_us for entry in claimed if entry.partition == 1]
    assert order == sorted(order)
    assert sum(world.index.queries) < 20 * 5_000


async def test_a_burst_at_one_instant_is_in_memory_before_it_comes() -> None:
    world = World(ScannerSettings(read_batch=500))
    for number in range(3_000):
        world.index.put(NOW_S + 40, number)
    await world.read()
    assert len(world.agenda) == 3_000
    assert max(world.index.queries) <= 500


async def test_idle_it_reads_once_a_sweep_and_finds_nothing_twice() -> None:
    world = World(ScannerSettings(), partitions=64)
    for number in range(640):
        world.index.put(NOW_S + 3_600, number, number % 64)
    for _ in range(100):
        world.clock.at += await world.sweep.step()
    elapsed = world.clock.at - NOW_S
    assert len(world.index.queries) <= elapsed / world.settings.sweep_s + 3
    assert sum(world.index.queries) == 0


@pytest.mark.parametrize("ahead", [False, True])
async def test_after_a_pass_that_took_minutes_what_is_due_is_still_found(ahead: bool) -> None:
    world = World(ScannerSettings())
    world.index.takes_s = 180.0
    await world.sweep.step()
    world.index.takes_s = 0.0
    world.clock.at += 10.0
    await world.read()  # the pass after the slow one
    # One is written in time, and comes due behind what has been read of the horizon by now; of the
    # other, due at once, the notification was lost.
    due_s = world.clock.at + (90.0 if ahead else 0.0)
    world.index.put(due_s, 1)
    wanted = world.clock.at
    while not world.claim():
        if world.clock.at >= wanted:
            wanted = world.clock.at + await world.sweep.step()
        world.clock.at += 0.5
        assert world.clock.at < due_s + world.settings.horizon_s
    late = world.clock.at - due_s
    assert late <= (0.6 if ahead else world.settings.horizon_s / 2 + 1.0)


async def test_after_a_lost_connection_everything_is_read_again_at_once() -> None:
    world = World(ScannerSettings(sweep_s=10, horizon_s=60))
    await world.read()
    world.index.put(NOW_S + 50, 1)
    world.index.put(NOW_S + 1, 2)
    await world.read()
    assert len(world.agenda) == 0
    world.sweep.reload()
    await world.read()
    assert len(world.agenda) == 2


async def test_a_partition_that_wrote_more_than_was_told_is_read_again_from_there() -> None:
    world = World(ScannerSettings(sweep_s=10, horizon_s=60), partitions=2)
    await world.read()
    for number in range(50):
        world.index.put(NOW_S + 30 + number / 10, number, number % 2)
    world.sweep.reread(1, int((NOW_S + 30) * 1e6))
    await world.read()
    assert len(world.agenda) == 25


async def test_a_full_wheel_forgets_what_is_far_and_reads_it_when_it_is_near() -> None:
    world = World(ScannerSettings(wheel_capacity=100, read_batch=64, horizon_s=60))
    for number in range(300):
        world.index.put(NOW_S + 5 + number / 10, number)
    world.index.put(NOW_S + 0.5, 999)
    claimed: list[Entry] = []
    while world.clock.at < NOW_S + 40:
        pause = await world.sweep.step()
        claimed += world.claim()
        world.clock.at += min(0.05, pause)
        assert len(world.agenda) <= 100
    assert len(claimed) == 301
    assert [entry.due_us for entry in claimed] == sorted(entry.due_us for entry in claimed)


@pytest.mark.parametrize("limit", [16, 5_000])
async def test_a_partition_lost_takes_its_entries_with_it(limit: int) -> None:
    world = World(ScannerSettings(read_batch=limit), partitions=2)
    for number in range(100):
        world.index.put(NOW_S + 10, number, number % 2)
    await world.read()
    world.territory.lose(0)
    assert {entry.partition for entry in world.agenda.wheel.pop_due(1 << 60)} == {1}
    await world.read()
