"""Both ends of the ready queue in memory: as the scanner publishes, as the worker pulls."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from horolog.application.scanner.headroom import Depth
from horolog.application.scanner.looking import Held, QueueState
from horolog.application.scanner.outbox import Message
from horolog.application.scanner.publishing import Answer, Receipt
from horolog.application.scanner.sent import Place
from horolog.application.worker.held import ReadyMessage, Wanted, Word, as_many_as_there_are
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.simulated.links import Link, direct
from horolog.infrastructure.simulated.ready_stream import (
    Delivery,
    SimulatedStream,
    Stored,
)

_ANSWERS: dict[Stored, Answer] = {
    "stored": "stored",
    "duplicate": "duplicate",
    "full": "refused",
    "too_large": "too_large",
    "missing": "unknown",
}


class SimulatedReadyQueue:
    """As :class:`SeesQueue` and :class:`SeesDepths` promise."""

    def __init__(self, stream: SimulatedStream, link: Link = direct) -> None:
        self._stream = stream
        self._link = link
        self._life: int | None = None
        self._made: set[str] = set()
        self._published_to: dict[str, None] = {}

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        outgoing = [(m.queue, m.message_id, m.data) for m in messages]
        queues = dict.fromkeys(message.queue for message in messages)
        self._published_to |= queues
        missing = [queue for queue in queues if queue not in self._made]
        if missing:
            await self._link(lambda: self._ensure(missing))
            self._made.update(missing)
        life = self._life if self._life is not None else await self._link(self._ensured)
        self._note(life)
        answers = await self._sent(outgoing)
        if any(answer is not None and answer[0] == "missing" for answer in answers):
            self._forget()
        return [
            _receipt(answer, life, message_id)
            for answer, (_, message_id, _) in zip(answers, outgoing, strict=True)
        ]

    async def holds(self, places: Sequence[Place]) -> list[bool]:
        asked = list(places)

        def holds(place: Place) -> bool:
            state = self._stream.state()
            if state is None or str(state[0]) != place.life:
                return False
            message = self._stream.message(place.seq)
            return message is not None and message.message_id == place.message_id

        return await self._link(lambda: [holds(place) for place in asked])

    async def look(self) -> QueueState:
        published_to = list(self._published_to)

        def look() -> tuple[int, int, int]:
            self._stream.ensure()
            self._ensure(published_to)
            state = self._stream.state()
            assert state is not None
            return state

        life, first_seq, last_seq = await self._link(look)
        self._note(life)
        return QueueState(str(life), first_seq, last_seq)

    async def contents(self, life: str, first_seq: int, count: int) -> list[Held]:
        def contents() -> list[Held]:
            numbers = range(first_seq, first_seq + count)
            found = (self._stream.message(seq) for seq in numbers)
            return [
                Held(Place(life, message.seq, message.message_id), message.data)
                for message in found
                if message is not None
            ]

        return await self._link(contents)

    async def depths(self, queues: Collection[str]) -> dict[str, Depth]:
        asked = list(queues)
        return await self._link(lambda: {q: Depth(*self._stream.depth(q)) for q in asked})

    async def _sent(
        self, outgoing: Sequence[tuple[str, str, bytes]]
    ) -> Sequence[tuple[Stored, int] | None]:
        """The answers of the stream, in order; ``None``: none came."""
        return await self._link(lambda: [self._stream.publish(*message) for message in outgoing])

    def _ensure(self, queues: Sequence[str]) -> None:
        for queue in queues:
            self._stream.ensure_queue(queue)

    def _ensured(self) -> int:
        self._stream.ensure()
        state = self._stream.state()
        assert state is not None
        return state[0]

    def _note(self, life: int) -> None:
        if life != self._life:
            self._forget()
            self._life = life

    def _forget(self) -> None:
        self._life = None
        self._made = set()


def _receipt(answer: tuple[Stored, int] | None, life: int, message_id: str) -> Receipt:
    if answer is None:
        return Receipt("unknown", detail="no answer came")
    stored, seq = answer
    place = Place(str(life), seq, message_id) if stored in ("stored", "duplicate") else None
    return Receipt(_ANSWERS[stored], place, "" if place else f"the stream is {stored}")


class SimulatedReadyMessage:
    """As :class:`horolog.application.worker.held.ReadyMessage` promises."""

    def __init__(self, delivery: Delivery, source: "SimulatedReadySource") -> None:
        self.delivery = delivery
        self._source = source

    @property
    def data(self) -> bytes:
        return self.delivery.message.data

    @property
    def age_s(self) -> float:
        return max(0.0, self._source.now() - self.delivery.message.stored_at)

    @property
    def traceparent(self) -> str | None:
        return None

    def tell(self, word: Word) -> None:
        self._source.say(self.delivery, word)


class SimulatedReadySource:
    """As :class:`horolog.application.worker.held.PullsReady` promises.

    ``queues`` as in the real one; ``linger_s`` is after how long it asks again though nobody told
    it of anything. ``now`` is this process's own idea of the time.
    """

    def __init__(
        self,
        stream: SimulatedStream,
        queues: Sequence[str] | None,
        now: Callable[[], float],
        link: Link = direct,
        *,
        linger_s: float = 5.0,
    ) -> None:
        self.now = now
        self._stream = stream
        self._queues = queues
        self._link = link
        self._linger_s = linger_s
        self._buffer: deque[SimulatedReadyMessage] = deque()
        self._news = asyncio.Event()

    async def start(self) -> None:
        await self._link(lambda: [self._stream.ensure_queue(q) for q in self._queues or ()])
        self._stream.changed.append(self._told)

    async def pull(self, limit: int, wanted: Wanted = as_many_as_there_are) -> list[ReadyMessage]:
        while not self._buffer:
            self._news.clear()
            wait_s = self._linger_s
            try:
                taken, offer_at = await self._ask(limit, wanted)
            except QueueUnavailable:
                await asyncio.sleep(min(1.0, self._linger_s))
                continue
            self._buffer += [SimulatedReadyMessage(delivery, self) for delivery in taken]
            if self._buffer:
                break
            if offer_at is not None:
                wait_s = min(wait_s, max(0.0, offer_at))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news.wait()
        given: list[ReadyMessage] = [
            self._buffer.popleft() for _ in range(min(limit, len(self._buffer)))
        ]
        return given

    def wants_more(self) -> None:
        self._news.set()

    async def _ask(self, limit: int, wanted: Wanted) -> tuple[list[Delivery], float | None]:
        """What is there, and in how many seconds something may be offered again."""

        def ask() -> tuple[list[Delivery], float | None]:
            for queue in self._queues or ():
                self._stream.ensure_queue(queue)
            names = self._stream.queues() if self._queues is None else self._queues
            most = {name: most for name in names if (most := wanted(name)) > 0}
            taken = self._stream.take(most, limit)
            offer_at = self._stream.next_offer(most)
            return taken, None if offer_at is None else offer_at - self._stream.now()

        return await self._link(ask)

    def say(self, delivery: Delivery, word: Word) -> None:
        """Says to the stream what becomes of a delivery. One that is lost costs a redelivery."""
        match word.kind:
            case "done" | "never":
                self._stream.done(delivery)
            case "working":
                self._stream.working(delivery)
            case _:
                self._stream.later(delivery, word.delay_s)

    async def close(self) -> None:
        """Offers again what was not taken."""
        if self._told in self._stream.changed:
            self._stream.changed.remove(self._told)
        while self._buffer:
            self._buffer.popleft().tell(Word("later"))

    def _told(self) -> None:
        self._news.set()
