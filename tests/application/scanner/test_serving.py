"""Lanes that were full: who waits in them, who is next, and when it is worth looking."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from horolog.application.decision import Decision, Guard
from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.deciding import Proposal
from horolog.application.scanner.lanes import UNTOLD_PAUSE_S, Waiting, WaitingLanes
from horolog.application.scanner.news import LaneFree, read_news
from horolog.application.scanner.serving import SURVEY_S, Next, Serving
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.application.scanner.wheel import Entry, Wheel
from horolog.domain.definition import JobDefinition
from horolog.domain.job import JobState
from horolog.domain.lanes import Lane
from horolog.domain.schedule import Once

CARD = Lane("key:card", limit=3)
SLOW = Lane("key:slow", rate=0.5)


class HandClock:
    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


class Index:
    """Rows that wait in lanes, and how many slots each lane has free."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Entry]] = {}
        self.free: dict[str, int] = {}
        self.asked: list[list[str]] = []

    async def next_in_lanes(
        self, lanes: Sequence[Waiting], partitions: Sequence[int]
    ) -> list[Next]:
        self.asked.append([lane.name for lane in lanes])
        answers: list[Next] = []
        for lane in lanes:
            rows = self.rows.get(lane.name, [])
            free = min(self.free.get(lane.name, 0), lane.most)
            answers.append(Next(len(rows) > free or (bool(rows) and not free), rows[:free]))
        return answers

    async def waiting_lanes(self, after: str, limit: int) -> list[tuple[str, int]]:
        found = sorted(name for name, rows in self.rows.items() if rows and name > after)
        return [(name, self.rows[name][0].partition) for name in found[:limit]]


class World:
    def __init__(self) -> None:
        self.clock, self.index = HandClock(), Index()
        self.territory, self.lanes = Territory("me"), WaitingLanes()
        self.agenda = Agenda(Wheel())
        self.serving = Serving(
            self.territory,
            self.agenda,
            self.lanes,
            index=self.index,
            clock=self.clock,
            signals=Signals(),
        )
        self.territory.gain(Term(0, 1, 1e9, 0))

    def wait_in(self, lane: Lane, *numbers: int, partition: int = 0) -> None:
        entries = [Entry(number, UUID(int=number), partition) for number in numbers]
        self.index.rows.setdefault(lane.name, []).extend(entries)

    def drawn(self) -> list[int]:
        entries = self.agenda.draw(1_000_000, 100, {0})
        self.agenda.settle(entries)
        return [entry.id.int for entry in entries]


def proposal(number: int, *lanes: Lane) -> Proposal:
    schedule = Once(datetime(2027, 1, 1, tzinfo=UTC)).to_json()
    definition = JobDefinition(name="a.b", schedule=schedule)
    identity = UUID(int=number)
    decision = Decision(Guard("next_run", identity, 1), 0, lanes=list(lanes))
    job = JobState(identity, 1, "active", 0, definition)
    return Proposal(identity, 0, 0, "claimed", decision, job)


async def test_a_slot_that_is_free_is_given_to_the_one_that_waits_longest() -> None:
    world = World()
    await world.serving.step()
    world.wait_in(CARD, 1, 2, 3)
    world.serving.refused(proposal(3, CARD))
    world.clock.at += 0.1
    await world.serving.step()
    assert world.drawn() == [], "no slot is free"
    world.index.free[CARD.name] = 1
    assert world.serving.told(CARD.name)
    assert not world.serving.told("key:nobody waits here")
    await world.serving.step()
    assert world.serving.brought == 1
    assert world.drawn() == [1]


async def test_who_comes_later_waits_behind_the_others_and_who_is_next_does_not() -> None:
    world = World()
    await world.serving.step()
    world.wait_in(CARD, 1, 2)
    world.serving.refused(proposal(2, CARD))
    world.index.free[CARD.name] = 1
    world.clock.at += 0.1
    await world.serving.step()
    latecomer, following, stranger = proposal(9, CARD), proposal(1, CARD), proposal(8, SLOW)
    world.serving.queue_up([latecomer, following, stranger])
    assert latecomer.decision.lanes == [Lane(CARD.name, limit=0)]
    assert following.decision.lanes == [CARD]
    assert stranger.decision.lanes == [SLOW]
    again = proposal(1, CARD)
    world.serving.queue_up([again])
    assert again.decision.lanes == [Lane(CARD.name, limit=0)], "its turn is over"


async def test_a_lane_in_which_nobody_waits_any_more_is_open_again() -> None:
    world = World()
    await world.serving.step()
    world.wait_in(CARD, 1)
    world.serving.refused(proposal(1, CARD))
    world.index.free[CARD.name] = 3
    world.clock.at += 0.1
    await world.serving.step()
    newcomer = proposal(5, CARD)
    world.serving.queue_up([newcomer])
    assert newcomer.decision.lanes == [CARD]


async def test_without_news_a_full_lane_is_looked_at_every_while_and_not_more_often() -> None:
    world = World()
    world.wait_in(CARD, 1)
    world.serving.refused(proposal(1, CARD))
    ended = world.clock.at + 60
    while world.clock.at < ended:
        world.clock.at += max(0.001, await world.serving.step())
    assert 60 / UNTOLD_PAUSE_S - 2 <= len(world.index.asked) <= 60 / UNTOLD_PAUSE_S + 3


async def test_a_rate_is_looked_at_as_often_as_it_lets_one_by() -> None:
    world = World()
    quick = Lane("key:quick", rate=10.0)
    world.wait_in(quick, 1)
    world.serving.refused(proposal(1, quick))
    ended = world.clock.at + 10
    while world.clock.at < ended:
        world.clock.at += max(0.001, await world.serving.step())
    assert 80 <= len(world.index.asked) <= 110


async def test_a_new_leader_finds_the_lanes_that_are_waited_for() -> None:
    world = World()
    world.wait_in(CARD, 1, 2)
    world.wait_in(Lane("key:others"), 3, partition=7)
    world.wait_in(Lane("queue:q"), 4, partition=7)
    world.index.free = {CARD.name: 1}
    await world.serving.step()
    assert world.index.asked == [[CARD.name, "queue:q"]]
    assert world.drawn() == [1]
    world.index.rows.clear()
    world.clock.at += SURVEY_S
    world.index.rows[SLOW.name] = [Entry(5, UUID(int=5), 0)]
    await world.serving.step()
    assert SLOW.name in world.lanes, "what was forgotten is found by the next survey"
    assert CARD.name not in world.lanes


def test_names_of_lanes_come_through_the_news_whatever_they_hold() -> None:
    assert list(read_news('lane "key:a b\\n\\u2028\\"c"')) == [LaneFree('key:a b\n\u2028"c')]
    assert list(read_news('lane "cut off')) == []
