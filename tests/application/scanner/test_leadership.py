"""Leases and elections among several instances, with a clock that the test moves."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences, Verdict
from horolog.application.scanner.clock import DatabaseTime
from horolog.application.scanner.leadership import Leadership, Lease, View
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory
from horolog.domain.errors import StoreUnavailable
from horolog.domain.ids import partition_stream
from horolog.domain.partition import Elected, PartitionState, Released, evolve

SETTINGS = ScannerSettings(lease_s=9, settle_s=0.5)


class HandClock:
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


class Store:
    """Partitions, leases and heartbeats in memory, by the rules of the real ones."""

    def __init__(self, clock: HandClock, partitions: int) -> None:
        self.clock = clock
        self.states = {n: PartitionState(partition_stream("t", n), n) for n in range(partitions)}
        self.until = dict.fromkeys(self.states, 0.0)
        self.seen: dict[str, float] = {}
        self.elections: list[tuple[int, str, int]] = []
        self.away = False
        self.commits_s = 0.0

    async def renew(
        self,
        instance: str,
        tokens: Mapping[int, int],
        *,
        lease_s: float,
        details: Mapping[str, object],
    ) -> View:
        if self.away:
            raise StoreUnavailable("away")
        now = self.clock.at
        self.seen[instance] = now + lease_s
        for number, token in tokens.items():
            state = self.states[number]
            if state.instance == instance and state.token == token:
                self.until[number] = now + lease_s
        alive = sorted(name for name, until in self.seen.items() if until >= now)
        leases = [
            Lease(state, state.instance is not None and self.until[number] >= now, 0)
            for number, state in self.states.items()
        ]
        others = [
            self.until[number] - now
            for number, state in self.states.items()
            if state.instance not in (None, instance) and self.until[number] >= now
        ]
        self.clock.at += self.commits_s
        return View(int(now * 1e6), alive, leases, min(others, default=None))

    async def now_us(self) -> int:
        return int(self.clock.at * 1e6)

    async def leave(self, instance: str) -> None:
        del self.seen[instance]

    async def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        assert fences is not None
        verdicts: list[Verdict] = []
        for decision in decisions:
            number = decision.partition
            state = self.states[number]
            free = state.instance in (None, fences.instance) or self.until[number] < self.clock.at
            if state.version != decision.guard.version or not free:
                verdicts.append("conflict")
                continue
            for new in decision.events:
                state = evolve(state, new.event)
                if isinstance(new.event, Elected):
                    self.elections.append((number, new.event.instance, state.version))
                    self.until[number] = self.clock.at + new.event.lease
                assert isinstance(new.event, Elected | Released)
            self.states[number] = state
            verdicts.append("accepted")
        return Appended(verdicts, 0, datetime.now(UTC))

    def led(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for number, state in self.states.items():
            if state.instance is not None and self.until[number] >= self.clock.at:
                counts[state.instance] = counts.get(state.instance, 0) + 1
        return counts


class Instance:
    def __init__(self, name: str, store: Store, clock: HandClock) -> None:
        self.territory = Territory(name)
        self.signals = Signals()
        self.time = DatabaseTime(clock)
        self.leadership = Leadership(
            self.territory,
            leases=store,
            log=store,
            clock=clock,
            time=self.time,
            settings=SETTINGS,
            signals=self.signals,
            details={},
        )


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def settle(clock: HandClock, instances: list[Instance], rounds: int = 6) -> None:
    for _ in range(rounds):
        for instance in instances:
            await instance.leadership.step()
            clock.at += 0.01
        clock.at += SETTINGS.settle_s


@pytest.mark.parametrize(("partitions", "instances"), [(64, 1), (64, 3), (7, 2), (3, 5), (64, 10)])
async def test_instances_share_the_partitions_evenly(
    clock: HandClock, partitions: int, instances: int
) -> None:
    store = Store(clock, partitions)
    group = [Instance(f"i{number}", store, clock) for number in range(instances)]
    await settle(clock, group)
    counts = [store.led().get(f"i{number}", 0) for number in range(instances)]
    assert sum(counts) == partitions
    assert max(counts) - min(counts) <= 1


async def test_a_newcomer_gets_its_share_within_seconds_and_then_all_is_quiet(
    clock: HandClock,
) -> None:
    store = Store(clock, 64)
    first, second = Instance("a", store, clock), Instance("b", store, clock)
    await settle(clock, [first])
    assert store.led() == {"a": 64}
    before = clock.at
    await settle(clock, [first, second], rounds=3)
    assert clock.at - before < 3
    assert store.led() == {"a": 32, "b": 32}
    elections = len(store.elections)
    assert await first.leadership.step() == SETTINGS.renew_s
    await settle(clock, [first, second], rounds=10)
    assert len(store.elections) == elections, "leadership does not move without a reason"


async def test_the_end_of_a_silent_leaders_lease_is_not_slept_through(clock: HandClock) -> None:
    store = Store(clock, 8)
    first, second = Instance("a", store, clock), Instance("b", store, clock)
    await settle(clock, [first, second])
    silent_since = clock.at
    pause_s = 0.0
    while store.led() != {"b": 8}:
        clock.at += pause_s
        assert clock.at < silent_since + SETTINGS.lease_s + 0.1
        pause_s = await second.leadership.step()


async def test_a_dead_leader_is_succeeded_after_its_lease_under_a_newer_token(
    clock: HandClock,
) -> None:
    store = Store(clock, 8)
    first, second = Instance("a", store, clock), Instance("b", store, clock)
    await settle(clock, [first, second])
    tokens = {number: state.token for number, state in store.states.items()}
    await settle(clock, [second], rounds=4)
    assert store.led() == {"a": 4, "b": 4}, "a lease that runs is respected"
    clock.at += SETTINGS.lease_s
    await settle(clock, [second])
    assert store.led() == {"b": 8}
    for number, instance, token in store.elections[-4:]:
        assert instance == "b"
        before = tokens[number]
        assert before is not None
        assert token > before


async def test_the_time_is_not_behind_by_what_a_renewal_takes_to_commit(clock: HandClock) -> None:
    store = Store(clock, 8)
    store.commits_s = 0.004
    one = Instance("one", store, clock)
    for _ in range(3):
        await one.leadership.step()
        assert one.time.now_us() == int(clock.at * 1e6)
    assert one.signals.counts["clock_stepped"] == 0


async def test_trust_ends_before_the_lease_does(clock: HandClock) -> None:
    store = Store(clock, 2)
    leader = Instance("a", store, clock)
    await settle(clock, [leader])
    store.away = True
    with pytest.raises(StoreUnavailable):
        await leader.leadership.step()
    until = min(store.until.values())
    clock.at = until - 0.001
    assert leader.territory.trusted(clock.at) == {}
    assert leader.territory.terms, "it may still be ours: the store decides when it is back"
    store.away = False
    await leader.leadership.step()
    assert len(leader.territory.trusted(clock.at)) == 2


async def test_a_leader_that_slept_through_its_lease_learns_that_it_was_deposed(
    clock: HandClock,
) -> None:
    store = Store(clock, 4)
    sleeper, other = Instance("a", store, clock), Instance("b", store, clock)
    await settle(clock, [sleeper])
    lost: list[int] = []
    sleeper.territory.lost.append(lambda term: lost.append(term.partition))
    clock.at += 2 * SETTINGS.lease_s
    await settle(clock, [other])
    assert sleeper.territory.trusted(clock.at) == {}
    await sleeper.leadership.step()
    assert sorted(lost) == [0, 1, 2, 3]
    assert sleeper.signals.counts["deposed"] == 4


async def test_a_graceful_end_leaves_nobody_waiting_for_a_lease(clock: HandClock) -> None:
    store = Store(clock, 6)
    first, second = Instance("a", store, clock), Instance("b", store, clock)
    await settle(clock, [first, second])
    await first.leadership.resign()
    await second.leadership.step()
    assert store.led() == {"b": 6}
    assert first.territory.terms == {}
    assert list(store.seen) == ["b"]


async def test_an_election_whose_answer_was_lost_is_recognised_as_ones_own(
    clock: HandClock,
) -> None:
    store = Store(clock, 1)
    leader = Instance("a", store, clock)
    store.states[0] = replace(store.states[0], version=1, instance="a", token=1)
    store.until[0] = clock.at + 9
    await leader.leadership.step()
    assert leader.territory.trusted(clock.at) == {0: 1}


async def test_an_error_while_it_runs_for_the_lead_makes_nobody_leader(clock: HandClock) -> None:
    class Refusing(Store):
        async def append(
            self, decisions: Sequence[Decision], fences: Fences | None = None
        ) -> Appended:
            raise StoreUnavailable("reset while it was being elected")

    store = Refusing(clock, 8)
    standby = Instance("standby", store, clock)
    for _ in range(100):
        with pytest.raises(StoreUnavailable):
            await standby.leadership.step()
        assert standby.territory.trusted(clock.at) == {}
        assert standby.territory.terms == {}
        clock.at += SETTINGS.settle_s
    assert store.elections == []
