"""From accepted claims to confirmed messages, against a queue that answers as it is told."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from horolog.application.ready import MAX_MESSAGE_BYTES, MAX_RUNS, decode
from horolog.application.scanner.headroom import Headroom
from horolog.application.scanner.outbox import Message, Outbox
from horolog.application.scanner.progress import Batch, Progress
from horolog.application.scanner.publishing import Publishing, Receipt
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.sent import Place, SentMessages
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import QueueUnavailable
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState

AT = datetime(2026, 12, 1, tzinfo=UTC)


class HandClock:
    at = 100.0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


class Queue:
    """Stores what it is given, unless ``answer`` says otherwise."""

    def __init__(self) -> None:
        self.stored: dict[int, Message] = {}
        self.rounds: list[int] = []
        self.ids: list[str] = []
        self.answer: Callable[[Message], Receipt | None] = lambda message: None
        self.away = False
        self.cannot_say = False

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        if self.away:
            raise QueueUnavailable("away")
        self.rounds.append(len(messages))
        return [self.answer(message) or self.store(message) for message in messages]

    def store(self, message: Message) -> Receipt:
        seq = len(self.ids) + 1
        self.ids.append(message.message_id)
        self.stored[seq] = message
        return Receipt("stored", Place("life", seq, message.message_id))

    async def holds(self, places: Sequence[Place]) -> list[bool]:
        if self.cannot_say:
            raise QueueUnavailable("away")
        return [
            place.seq in self.stored and self.stored[place.seq].message_id == place.message_id
            for place in places
        ]

    def runs(self) -> list[UUID]:
        return [run.occurrence for message in self.stored.values() for run in decode(message.data)]


class Marks:
    def __init__(self) -> None:
        self.written: list[Mapping[int, int]] = []

    async def mark_published(
        self, instance: str, tokens: Mapping[int, int], positions: Mapping[int, int]
    ) -> None:
        assert set(tokens) == set(positions)
        self.written.append(positions)


class Nothing:
    async def looks(self, ranges: Sequence[object], limit: int) -> list[list[object]]:
        return [[] for _ in ranges]

    async def due(self, ids: Sequence[UUID]) -> list[DueJob | DueOccurrence]:
        return []

    async def unfinished(self, job_id: UUID, limit: int) -> list[OccurrenceState]:
        return []

    async def known(self, ids: Sequence[UUID]) -> set[UUID]:
        return set()


class World:
    def __init__(self, **settings: object) -> None:
        self.settings = ScannerSettings(**settings)
        self.clock = HandClock()
        self.progress = Progress()
        self.outbox = Outbox(self.settings, self.progress)
        self.sent = SentMessages()
        self.signals = Signals()
        self.queue = Queue()
        self.marks = Marks()
        self.territory = Territory("me")
        self.republishing = Republishing(
            self.territory,
            self.outbox,
            self.progress,
            self.sent,
            index=Nothing(),  # pyright: ignore[reportArgumentType] - it has no rows of any kind
            rows=Nothing(),
            signals=self.signals,
        )
        self.publishing = Publishing(
            self.territory,
            self.outbox,
            self.progress,
            self.sent,
            self.republishing,
            Headroom(self.settings, self.clock),
            queue=self.queue,
            marks=self.marks,
            clock=self.clock,
            settings=self.settings,
            signals=self.signals,
        )
        self.position = 0

    def claim(
        self, count: int, *, queue: str = "default", partition: int = 0, size: int = 10
    ) -> list[UUID]:
        definition = JobDefinition(
            name="a.b", schedule={}, queue=queue, payload={"text": "x" * size}
        )
        job = JobState(uuid4(), 1, "active", partition, definition)
        self.position += count
        batch = self.progress.begin(partition, self.position, count)
        ids = [uuid4() for _ in range(count)]
        for identity in ids:
            claimed = OccurrenceState(
                identity, job.id, partition, AT, "schedule", 1, "claimed", attempt=1
            )
            self.outbox.add(job, claimed, batch=batch)
        return ids

    async def publish(self, most: int = 1_000) -> float:
        waited = 0.0
        for _ in range(most):
            pause = await self.publishing.step()
            if pause is None:
                return waited
            waited += pause
        raise AssertionError("publishing does not come to an end")


async def test_a_run_alone_travels_alone_under_its_own_id() -> None:
    world = World()
    ids = world.claim(3)
    await world.publish()
    assert world.queue.ids == [f"{identity}:1" for identity in ids]
    assert world.queue.runs() == ids


async def test_in_a_flood_runs_share_messages_and_none_is_too_large() -> None:
    world = World(max_unpublished_bytes=10_000_000)
    ids = world.claim(1_000) + world.claim(200, size=30_000)
    await world.publish()
    sizes = [len(decode(message.data)) for message in world.queue.stored.values()]
    assert max(sizes) == MAX_RUNS
    assert max(len(m.data) for m in world.queue.stored.values()) <= MAX_MESSAGE_BYTES + 100
    assert sorted(world.queue.runs()) == sorted(ids)
    assert len(set(world.queue.ids)) == len(world.queue.ids)


async def test_the_last_runs_of_a_flood_share_messages_too() -> None:
    world = World()
    world.claim(1_000)
    await world.publish()
    assert len(world.queue.stored) == 1_000 / MAX_RUNS
    world.claim(3)
    await world.publish()
    assert len(world.queue.stored) == 1_000 / MAX_RUNS + 3, "the flood is over"


async def test_a_flood_in_one_queue_does_not_delay_another() -> None:
    world = World()
    world.claim(5_000, queue="flood")
    [single] = world.claim(1, queue="quiet")
    assert any(run.occurrence == single for message in world.outbox.take(4) for run in message.runs)


async def test_a_time_out_is_repeated_as_it_was_under_the_same_id() -> None:
    world = World()
    ids = world.claim(300)
    seen: list[str] = []

    def silent_once(message: Message) -> Receipt | None:
        seen.append(message.message_id)
        return Receipt("unknown") if seen.count(message.message_id) == 1 else None

    world.queue.answer = silent_once
    await world.publish()
    assert sorted(world.queue.runs()) == sorted(ids)
    assert set(seen) == set(world.queue.ids), "no message went out under a second id"


async def test_a_queue_that_takes_nothing_and_says_nothing_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.claim(300)
    for _ in range(3):
        world.queue.answer = lambda message: Receipt("unknown", detail="no answer within 5 s")
        for _ in range(3):
            await world.publishing.step()
        world.queue.answer = lambda message: None
        await world.publish()
        world.claim(1)
    assert caplog.text.count("did not take a message (no answer within 5 s)") == 3


async def test_a_duplicate_that_the_queue_holds_is_believed() -> None:
    world = World()
    world.claim(1)
    [message] = world.outbox.take(1)
    world.outbox.put_back([message])
    stored = world.queue.store(message)
    world.queue.answer = lambda message: Receipt("duplicate", stored.place)
    await world.publish()
    assert len(world.outbox) == 0
    assert len(world.queue.ids) == 1


async def test_a_duplicate_that_the_queue_does_not_hold_goes_out_under_another_id() -> None:
    world = World()
    [identity] = world.claim(1)
    own_id = f"{identity}:1"

    def forgetful(message: Message) -> Receipt | None:
        if message.message_id == own_id:
            return Receipt("duplicate", Place("life", 77, own_id))
        return None

    world.queue.answer = forgetful
    await world.publish()
    assert world.queue.runs() == [identity]
    assert world.queue.ids != [own_id]
    assert world.signals.counts["false_duplicate"] == 1


async def test_a_message_of_which_the_queue_cannot_say_whether_it_holds_it_is_asked_again() -> None:
    world = World()
    doubtful, unconfirmed, stored = world.claim(3)
    ids = {f"{identity}:1": identity for identity in (doubtful, unconfirmed, stored)}

    def answer(message: Message) -> Receipt | None:
        if ids.get(message.message_id) == doubtful:
            return Receipt("duplicate", Place("life", 77, message.message_id))
        return Receipt("unknown") if ids.get(message.message_id) == unconfirmed else None

    world.queue.answer = answer
    world.queue.cannot_say = True
    for _ in range(2):
        with pytest.raises(QueueUnavailable):
            await world.publishing.step()
    assert world.queue.runs() == [stored]
    assert len(world.outbox) == 2
    assert world.progress.take_marks() == {}, "a successor publishes what nobody knows of"
    world.queue.cannot_say = False
    world.queue.answer = lambda m: answer(m) if ids.get(m.message_id) == doubtful else None
    await world.publish()
    assert world.queue.runs() == [stored, unconfirmed, doubtful], "none is lost, none is doubled"
    assert len(world.outbox) == 0
    assert world.outbox.unpublished("default") == 0
    assert world.outbox.room == world.settings.max_unpublished
    assert world.progress.take_marks() == {0: 3}


async def test_a_full_queue_is_tried_with_one_message_at_growing_pauses() -> None:
    world = World()
    ids = world.claim(50)
    room = 10

    def full(message: Message) -> Receipt | None:
        return None if len(world.queue.ids) < room else Receipt("refused", detail="full")

    world.queue.answer = full
    waited = 0.0
    for _ in range(20):
        waited += await world.publishing.step() or 0.0
    assert waited > 20, "the pauses grow to the longest"
    assert world.queue.rounds[1:] == [1] * 19
    room = 1_000
    await world.publish()
    assert world.queue.runs() == ids, "oldest first"


async def test_a_message_that_the_queue_will_never_take_does_not_stop_the_others() -> None:
    world = World()
    [large] = world.claim(1, queue="large")
    others = world.claim(5)
    world.queue.answer = lambda m: Receipt("too_large") if m.queue == "large" else None
    await world.publish()
    assert world.queue.runs() == others
    assert (large, 1) not in world.outbox
    assert world.signals.counts["too_large"] == 1


async def test_while_the_queue_is_away_the_outbox_fills_to_its_bound_and_nothing_is_lost() -> None:
    world = World(max_unpublished=100)
    world.queue.away = True
    ids = world.claim(60)
    with pytest.raises(QueueUnavailable):
        await world.publishing.step()
    assert world.outbox.room == 40
    ids += world.claim(60)
    assert world.outbox.room == 0
    world.queue.away = False
    await world.publish()
    assert world.queue.runs() == ids
    assert world.outbox.room == 100


async def test_large_payloads_fill_the_outbox_too() -> None:
    world = World(max_unpublished_bytes=100_000)
    world.claim(2, size=60_000)
    assert world.outbox.room == 0


async def test_the_position_passes_a_batch_only_when_all_before_it_is_confirmed() -> None:
    world = World()
    world.territory.gain(Term(0, 1, 1e9, 0))
    progress = world.progress
    progress.forget(0)
    first, second = progress.begin(0, 10, 2), progress.begin(0, 20, 1)
    progress.confirm(second)
    assert progress.take_marks() == {}
    progress.confirm(first)
    assert progress.take_marks() == {}
    progress.confirm(first)
    assert progress.take_marks() == {0: 20}


async def test_positions_are_written_for_partitions_that_are_led_and_again_after_a_failure() -> (
    None
):
    world = World()
    world.territory.gain(Term(0, 3, 1e9, 0))
    await world.publish()
    world.progress.forget(0)
    world.claim(2, partition=0)
    world.claim(1, partition=9)
    await world.publish()
    await world.publishing.mark()
    assert world.marks.written == [{0: 2}]
    await world.publishing.mark()
    assert len(world.marks.written) == 1, "nothing new, nothing written"


async def test_a_place_that_was_taken_before_shows_what_the_stream_has_lost() -> None:
    sent = SentMessages()
    lost = [uuid4() for _ in range(3)]
    for seq, identity in enumerate(lost, 8):
        assert sent.arrived(Place("life", seq, "m")) == []
        sent.note(identity, 1, Place("life", seq, "m"), expires=1e9)
    assert sent.arrived(Place("life", 9, "new")) == lost[1:]
    assert sent.find(lost[0], 1) is not None
    assert sent.find(lost[1], 1) is None


async def test_another_life_of_the_stream_has_nothing_of_the_one_before() -> None:
    sent = SentMessages()
    identity = uuid4()
    sent.note(identity, 1, Place("one", 5, "m"), expires=1e9)
    assert sent.lost_since("two", 100) == [identity]
    assert len(sent) == 0


def test_what_nobody_asks_for_is_forgotten_and_what_was_prolonged_is_kept() -> None:
    sent = SentMessages()
    gone, kept = uuid4(), uuid4()
    for identity in (gone, kept):
        sent.note(identity, 1, Place("life", 1, "m"), expires=10)
    sent.prolong(kept, 100)
    sent.expire(11)
    assert sent.find(gone, 1) is None
    assert sent.find(kept, 1) is not None
    sent.expire(101)
    assert len(sent) == 0


def test_a_batch_without_claims_is_passed_in_its_turn() -> None:
    progress = Progress()
    blocked: Batch = progress.begin(1, 5, 1)
    progress.begin(1, 9, 0)
    assert progress.take_marks() == {}
    progress.confirm(blocked)
    assert progress.take_marks() == {1: 9}
