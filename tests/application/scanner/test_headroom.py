"""How much a ready queue is given: as much as its workers take soon, whatever their pace."""

import asyncio
from collections import Counter, deque
from collections.abc import Collection

import pytest

from horolog.application.scanner.headroom import LEAST, Depth, Gauging, Headroom
from horolog.application.scanner.settings import ScannerSettings


class HandClock:
    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


class Worker:
    """A queue with a worker that takes so many runs a second; in a flood messages hold ``size``."""

    def __init__(self, pace: float, size: int = 1) -> None:
        self.pace, self.size = pace, size
        self.queue: deque[tuple[float, int]] = deque()
        self.delivered = 0
        self.taken = 0.0
        self.idle_s = 0.0
        self.waits: list[float] = []
        self.looks = 0

    def put(self, now: float, runs: int) -> list[int]:
        """As the outbox does it: many runs travel several in a message."""
        size = self.size if runs > 100 else 1
        sizes = [min(size, runs - at) for at in range(0, runs, size)]
        self.queue.extend((now, each) for each in sizes)
        return sizes

    def work(self, now: float, seconds: float) -> None:
        self.taken += self.pace * seconds
        while self.queue and self.taken >= self.queue[0][1]:
            put_at, size = self.queue.popleft()
            self.taken -= size
            self.delivered += 1
            self.waits.append(now - put_at)
        if not self.queue:
            self.idle_s += self.taken / self.pace if self.pace else 0.0
            self.taken = 0.0

    async def depths(self, queues: Collection[str]) -> dict[str, Depth]:
        self.looks += 1
        return dict.fromkeys(queues, Depth(len(self.queue), self.delivered))


async def flood(worker: Worker, seconds: float, *, batch: int = 1_000) -> Headroom:
    """Gives the worker as much as there is room for, all the time; a batch takes 20 ms."""
    clock = HandClock()
    headroom = Headroom(ScannerSettings(), clock)
    gauging = Gauging(headroom, lambda _: 0, queue=worker)
    while clock.at < seconds:
        count = min(batch, headroom.room("default"))
        if count:
            headroom.reserve(Counter(default=count))
            headroom.settle(Counter(default=count))
            headroom.given("default", count)
            for size in worker.put(clock.at, count):
                headroom.sent("default", size)
        for _ in range(4):
            clock.at += 0.005
            worker.work(clock.at, 0.005)
            await gauging.step()
    return headroom


@pytest.mark.parametrize("pace", [2, 20, 200, 2_000, 20_000])
@pytest.mark.parametrize("size", [1, 50])
async def test_who_comes_next_waits_a_moment_and_no_worker_is_short_of_work(
    pace: float, size: int
) -> None:
    worker = Worker(pace, size)
    headroom = await flood(worker, 20 + 250 / pace)
    later = worker.waits[len(worker.waits) // 2 :]
    assert headroom.bounds["default"] <= max(2 * LEAST, 1.5 * pace)
    assert max(later) < max(1.5, 2 * LEAST / pace)
    assert worker.idle_s < 1.5


async def test_while_nobody_takes_anything_little_is_given_and_looks_are_rare() -> None:
    worker = Worker(0)
    headroom = await flood(worker, 30)
    assert len(worker.queue) <= 100
    assert worker.looks < 30 * 4
    assert headroom.closed == ["default"]
    assert headroom.room("default") == 0


async def test_a_workers_return_opens_the_queue_again() -> None:
    clock = HandClock()
    headroom = Headroom(ScannerSettings(), clock)
    worker = Worker(0)
    gauging = Gauging(headroom, lambda _: 0, queue=worker)
    headroom.given("default", 100)
    worker.put(0, 100)
    assert headroom.room("default") == 0
    for _ in range(100):
        clock.at += 0.1
        assert not gauging.opened
        await gauging.step()
    worker.pace = 1_000
    opened_s = 0.0
    while not gauging.opened:
        worker.work(clock.at, 0.01)
        clock.at += 0.01
        opened_s += 0.01
        await gauging.step()
    assert opened_s < 0.7
    assert headroom.room("default") > 0


def test_first_runs_pass_where_a_queue_is_closed_up_to_half_as_many() -> None:
    headroom = Headroom(ScannerSettings(ahead_first=100), HandClock())
    headroom.given("default", 100)
    assert headroom.room("default") == 0
    assert headroom.room("default", True) == 50
    headroom.given("default", 50)
    assert headroom.room("default", True) == 0


def test_a_queue_that_is_far_from_full_is_not_looked_at() -> None:
    headroom = Headroom(ScannerSettings(ahead_first=100), HandClock())
    headroom.given("default", 50)
    assert headroom.next_look_s() is None
    headroom.given("default", 1)
    assert headroom.next_look_s() == 0.0
    assert headroom.to_look_at() == ["default"]


def test_what_is_on_its_way_counts_as_given() -> None:
    headroom = Headroom(ScannerSettings(ahead_first=100), HandClock())
    headroom.given("default", 90)
    before = headroom.begin_look(["default"])
    headroom.given("default", 20)
    headroom.observe("default", Depth(0, 10), given_before=before["default"], unpublished_before=80)
    assert headroom.room("default") == 0
