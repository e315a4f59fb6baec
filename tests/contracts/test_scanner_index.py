"""What every store promises to the scanner: bounded pages in order, lanes in turn, and news."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from tests.contracts.ear import Ear

from horolog.application.decision import Decision, decide_on_job
from horolog.application.scanner.clock import microseconds
from horolog.application.scanner.lanes import Waiting
from horolog.application.scanner.looking import Extension
from horolog.application.scanner.news import LaneFree, Reread, ScannersChanged
from horolog.application.scanner.sweep import BEGINNING, FIRST, Range
from horolog.application.scanner.wheel import Entry
from horolog.domain.definition import JobDefinition
from horolog.domain.job import decide_registration
from horolog.domain.lanes import Lane
from horolog.domain.occurrence_events import Attempted, CancelRequested, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.schedule import Once

if TYPE_CHECKING:
    from tests.contracts.conftest import Store, Story

    from horolog.domain.occurrence import OccurrenceState

ALWAYS = 1 << 60


def registration(at: datetime, partition: int, **values: object) -> Decision:
    definition = JobDefinition(name="a.b", schedule=Once(at).to_json(), **values)  # pyright: ignore[reportArgumentType]
    events = decide_registration(
        definition, partition=partition, key=None, now=at, origin=Origin("test")
    )
    return decide_on_job(None, uuid4(), events)[0]


def whole(partition: int) -> Range:
    return Range(partition, BEGINNING, FIRST, ALWAYS)


async def test_a_page_is_bounded_ordered_and_resumed_behind_its_last_row(store: Store) -> None:
    at = store.now() + timedelta(hours=1)
    decisions = [registration(at + timedelta(seconds=n % 3), n % 2) for n in range(40)]
    store.log.append(decisions)
    spans = [whole(partition) for partition in (1, 0, 9)]
    pages = await store.index.fires(spans, 15)
    assert [len(page) for page in pages] == [15, 15, 0]
    for page, span in zip(pages, spans, strict=True):
        assert page == sorted(page)
        assert {entry.partition for entry in page} <= {span.partition}
    last = pages[0][-1]
    [rest] = await store.index.fires([Range(1, last.due_us, last.id, ALWAYS)], 15)
    assert len(rest) == 5
    assert rest[0] > last
    everything = {entry.id for entry in pages[0] + rest}
    assert everything == {d.guard.id for d in decisions if d.partition == 1}


async def test_an_entry_says_with_whom_it_takes_turns(store: Store) -> None:
    at = store.now() + timedelta(hours=1)
    store.log.append(
        [
            registration(at, 5, queue="mail", priority=7),
            registration(at + timedelta(seconds=1), 5, concurrency_key="card"),
        ]
    )
    [page] = await store.index.fires([whole(5)], 10)
    assert [entry[3:] for entry in page] == [("mail", "na.b", 7), ("default", "kcard", 0)]


async def test_a_range_ends_where_it_should_and_holds_no_looks(store: Store, story: Story) -> None:
    claims = [story.claimed(story.registered()) for _ in range(3)]
    at = store.now() + timedelta(hours=1)
    store.log.append([registration(at + timedelta(seconds=n), 3) for n in range(4)])
    until = microseconds(at + timedelta(seconds=2))
    [page] = await store.index.fires([Range(3, BEGINNING, FIRST, until)], 10)
    assert [entry.due_us for entry in page][-1] == until
    assert len(page) == 3
    [looks] = await store.index.looks([whole(3)], 10)
    assert {look.id for look in looks} == {claim.id for claim in claims}
    assert {look.state for look in looks} == {"claimed"}
    assert sorted(look.position for look in looks) == [2, 4, 6]


async def test_a_window_is_extended_only_while_the_claim_stands(store: Store, story: Story) -> None:
    claimed = story.claimed(story.registered())
    running = story.went_on(story.claimed(story.registered()), Attempted(attempt=1, lease=5.0))
    await store.index.extend(
        [
            Extension(claimed.id, 1, 500.0),
            Extension(running.id, running.version, 500.0),
            Extension(uuid4(), 1, 1.0),
        ]
    )
    await store.index.extend([Extension(claimed.id, 2, 9_000.0)])
    rows = await store.index.due([claimed.id, running.id])
    after = {row.due_at - store.now() for row in rows}
    assert min(after) < timedelta(seconds=10)
    assert timedelta(seconds=400) < max(after) < timedelta(seconds=501)


async def test_known_and_unfinished_occurrences_are_those_of_the_log(
    store: Store, story: Story
) -> None:
    job = story.registered()
    claimed = story.claimed(job)
    assert await store.index.known([claimed.id, uuid4()]) == {claimed.id}
    assert [state.id for state in await store.index.unfinished(job.id, 10)] == [claimed.id]
    running = story.went_on(claimed, Attempted(attempt=1, lease=5.0))
    story.went_on(running, Succeeded(attempt=1))
    assert await store.index.unfinished(job.id, 10) == []


CARD = Lane("key:card", limit=1)


def wait_in_line(story: Story, count: int) -> tuple[OccurrenceState, list[UUID]]:
    """One holds the slot, the others wait in its lane; the jobs of those."""
    claims = [story.claiming(story.registered()) for _ in range(count + 1)]
    for decision, _ in claims:
        decision.lanes = [CARD]
    verdicts = story.append(*(decision for decision, _ in claims))
    assert verdicts == ["accepted"] + ["full"] * count
    return claims[0][1], [decision.guard.id for decision, _ in claims[1:]]


async def test_what_waits_in_a_lane_is_no_fire_and_comes_in_its_turn(
    store: Store, story: Story
) -> None:
    holder, waiting = wait_in_line(story, 3)
    lane = Waiting(CARD.name, limit=1)
    [page] = await store.index.fires([whole(3)], 10)
    assert not {entry.id for entry in page} & set(waiting)
    assert await store.index.waiting_lanes("", 10) == [(CARD.name, 3)]
    assert await store.index.waiting_lanes(CARD.name, 10) == []
    [none_free] = await store.index.next_in_lanes([lane], [3])
    assert (none_free.more, none_free.rows) == (True, [])
    running = story.went_on(holder, Attempted(attempt=1, lease=30.0))
    story.went_on(running, Succeeded(attempt=1))
    [free] = await store.index.next_in_lanes([lane], [3])
    assert free.more
    assert [entry.id for entry in free.rows] == sorted(waiting)[:1]
    [others] = await store.index.next_in_lanes([lane], [9])
    assert (others.more, others.rows) == (True, [])
    [empty] = await store.index.next_in_lanes([Waiting("key:other", limit=1)], [3])
    assert (empty.more, empty.rows) == (False, [])


async def test_what_comes_due_soon_is_told_at_once_and_later_things_are_not(store: Store) -> None:
    ear, stop = Ear(), asyncio.Event()
    listening = asyncio.create_task(store.news("due").hear(ear.hear, ear.connected, stop))
    await ear.until(begun=1)
    now = datetime.now(UTC).replace(microsecond=0)
    now = max(now, store.now().replace(microsecond=0)) if now < store.now() else store.now()
    soon, late = now + timedelta(seconds=20), now + timedelta(hours=2)
    near = registration(soon, 7)
    store.log.append([near, registration(late, 7)])
    await ear.until(heard=1)
    assert ear.heard == [Entry(microseconds(soon), near.guard.id, 7)]
    many = [registration(soon + timedelta(seconds=n % 5), n % 3) for n in range(600)]
    store.log.append(many)
    await ear.until(heard=4)
    assert sorted(ear.heard[1:], key=str) == [Reread(n, microseconds(soon)) for n in range(3)]
    stop.set()
    await listening


async def test_a_free_slot_and_a_new_scanner_are_told(store: Store, story: Story) -> None:
    ear, stop = Ear(), asyncio.Event()
    listening = asyncio.create_task(store.news("due").hear(ear.hear, ear.connected, stop))
    await ear.until(begun=1)
    for _ in range(2):
        await store.leases.renew("a", {}, lease_s=30.0, details={})
    await store.leases.leave("a")
    holder, _ = wait_in_line(story, 1)
    running = story.went_on(holder, Attempted(attempt=1, lease=30.0))
    story.went_on(running, Succeeded(attempt=1))
    await ear.until(heard=3)
    assert ear.heard == [ScannersChanged(), ScannersChanged(), LaneFree(CARD.name)]
    stop.set()
    await listening


async def test_who_is_to_stop_is_told(store: Store, story: Story) -> None:
    told: list[str] = []
    stop, changed, connected = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def hear(payload: str) -> None:
        told.append(payload)
        changed.set()

    listening = asyncio.create_task(store.news("stop").hear(hear, connected.set, stop))
    await asyncio.wait_for(connected.wait(), 10)
    running = story.went_on(story.claimed(story.registered()), Attempted(attempt=1, lease=5.0))
    story.went_on(running, CancelRequested())
    await asyncio.wait_for(changed.wait(), 10)
    assert told == [str(running.id)]
    stop.set()
    await listening
