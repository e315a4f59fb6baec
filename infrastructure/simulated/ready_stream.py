"""A JetStream work queue in memory: what the ready queue relies on, and what it must bear.

    publish ─▶ stored, unless its id was seen within the duplicate window, or the stream is full
    take    ─▶ delivered to one, and again after the ack wait, until it is acknowledged
    done    ─▶ gone from the stream

What can happen to a real one can be done to this: deleted, purged, its last messages lost, a
consumer deleted, its bounds changed. Pure but for the clock that it is given.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Stored = Literal["stored", "duplicate", "full", "too_large", "missing"]


class Bounds(BaseModel):
    """The stream's settings; seconds and messages."""

    model_config = ConfigDict(frozen=True)

    max_messages: int = 500_000
    max_message_bytes: int = 1 << 20
    duplicate_window_s: float = 20.0
    ack_wait_s: float = 30.0
    max_ack_pending: int = 20_000


@dataclass(slots=True)
class StoredMessage:
    """A message as the stream holds it; ``stored_at`` in seconds of the stream's clock.
    ``deliveries`` are counted over all consumers of its queue that there ever were."""

    seq: int
    queue: str
    message_id: str
    data: bytes
    stored_at: float
    deliveries: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message: which life of the stream, and the how-manyeth."""

    life: int
    message: StoredMessage
    count: int


@dataclass(slots=True)
class _Pending:
    """A message that was delivered; it is offered again at ``again_at``."""

    count: int
    again_at: float


@dataclass(slots=True)
class _Consumer:
    """``counts`` are the deliveries of what may be delivered again."""

    delivered: int = 0
    next_seq: int = 1
    pending: dict[int, _Pending] = field(default_factory=dict[int, _Pending])


@dataclass(slots=True)
class _Life:
    """One making of the stream."""

    number: int
    last_seq: int = 0
    messages: dict[int, StoredMessage] = field(default_factory=dict[int, StoredMessage])
    consumers: dict[str, _Consumer] = field(default_factory=dict[str, _Consumer])
    seen: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    order: deque[tuple[float, str]] = field(default_factory=deque[tuple[float, str]])


class SimulatedStream:
    """``now`` is the server's clock in seconds. ``changed`` is called whenever there may be
    something to take that was not there before."""

    def __init__(self, now: Callable[[], float], bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self.changed: list[Callable[[], None]] = []
        self.now = now
        self._lives = 0
        self._life: _Life | None = None

    # What clients ask for.

    def ensure(self) -> None:
        """Makes the stream if it is not there."""
        if self._life is None:
            self._lives += 1
            self._life = _Life(self._lives)

    def ensure_queue(self, queue: str) -> None:
        """Makes the consumer of a queue, and the stream too, if they are not there."""
        self.ensure()
        assert self._life is not None
        if queue not in self._life.consumers:
            self._life.consumers[queue] = _Consumer()
            self._tell()

    def queues(self) -> list[str]:
        return [] if self._life is None else sorted(self._life.consumers)

    def state(self) -> tuple[int, int, int] | None:
        """Its life, its first and its last sequence number; ``None`` if it is not there."""
        life = self._life
        if life is None:
            return None
        return life.number, min(life.messages, default=life.last_seq + 1), life.last_seq

    def publish(self, queue: str, message_id: str, data: bytes) -> tuple[Stored, int]:
        """What became of the message, and the sequence number where it is or is said to be."""
        life = self._life
        if life is None:
            return "missing", 0
        if len(data) > self.bounds.max_message_bytes:
            return "too_large", 0
        now = self.now()
        self._forget_ids(life, now)
        if message_id in life.seen:
            return "duplicate", life.seen[message_id][1]
        if len(life.messages) >= self.bounds.max_messages:
            return "full", 0
        life.last_seq += 1
        message = StoredMessage(life.last_seq, queue, message_id, data, now)
        life.messages[message.seq] = message
        life.seen[message_id] = (now, message.seq)
        life.order.append((now, message_id))
        self._tell()
        return "stored", message.seq

    def message(self, seq: int) -> StoredMessage | None:
        return None if self._life is None else self._life.messages.get(seq)

    def depth(self, queue: str) -> tuple[int, int]:
        """How many messages were not delivered yet, and how many deliveries there were ever."""
        life = self._life
        consumer = None if life is None else life.consumers.get(queue)
        if life is None or consumer is None:
            return 0, 0
        waiting = sum(
            message.queue == queue and message.seq >= consumer.next_seq
            for message in life.messages.values()
        )
        return waiting, consumer.delivered

    def take(self, queues: Mapping[str, int], limit: int) -> list[Delivery]:
        """Delivers up to ``limit`` messages, of each of the queues as many as is said."""
        life, now = self._life, self.now()
        if life is None:
            return []
        taken: list[Delivery] = []
        for name in sorted(queues):
            consumer, most = life.consumers.get(name), min(queues[name], limit - len(taken))
            if consumer is not None and most > 0:
                taken += self._deliver(life, name, consumer, most, now)
        return taken

    def next_offer(self, queues: Collection[str]) -> float | None:
        """When something that was delivered is offered again, if nobody acknowledges it."""
        life = self._life
        if life is None:
            return None
        times = [
            pending.again_at
            for name, consumer in life.consumers.items()
            if name in queues
            for pending in consumer.pending.values()
        ]
        return min(times, default=None)

    def done(self, delivery: Delivery) -> None:
        """Acknowledged, or never wanted again: the message goes."""
        life = self._of(delivery)
        if life is not None and life.messages.pop(delivery.message.seq, None) is not None:
            self._consumer(life, delivery).pending.pop(delivery.message.seq, None)
            self._tell()

    def working(self, delivery: Delivery) -> None:
        """The ack wait begins anew."""
        self._postpone(delivery, self.bounds.ack_wait_s)

    def later(self, delivery: Delivery, delay_s: float) -> None:
        """Offered again after so many seconds."""
        self._postpone(delivery, delay_s)
        self._tell()

    # What can happen to it.

    def delete(self) -> None:
        """`nats stream rm`, or a store directory that is gone."""
        self._life = None

    def purge(self) -> None:
        """All messages go; their ids are still known."""
        if self._life is not None:
            self._life.messages.clear()
            for consumer in self._life.consumers.values():
                consumer.pending.clear()
                consumer.next_seq = self._life.last_seq + 1

    def lose_end(self, count: int) -> None:
        """A server that had not synced comes back without the last ``count`` numbers."""
        life = self._life
        if life is None:
            return
        life.last_seq = max(0, life.last_seq - count)
        for seq in [seq for seq in life.messages if seq > life.last_seq]:
            del life.messages[seq]
        life.seen = {i: at for i, at in life.seen.items() if at[1] in life.messages}
        for consumer in life.consumers.values():
            consumer.next_seq = min(consumer.next_seq, life.last_seq + 1)
            for seq in [seq for seq in consumer.pending if seq > life.last_seq]:
                del consumer.pending[seq]

    def delete_consumer(self, queue: str) -> None:
        """What was delivered is delivered anew, to whoever makes the consumer again."""
        if self._life is not None:
            self._life.consumers.pop(queue, None)

    def deliver_again(self) -> None:
        """Everything that is being worked on is delivered a second time."""
        life = self._life
        if life is not None:
            for consumer in life.consumers.values():
                for pending in consumer.pending.values():
                    pending.again_at = self.now()
            self._tell()

    def held(self) -> list[StoredMessage]:
        return [] if self._life is None else list(self._life.messages.values())

    def _deliver(
        self, life: _Life, queue: str, consumer: _Consumer, limit: int, now: float
    ) -> list[Delivery]:
        taken: list[Delivery] = []
        for seq, pending in consumer.pending.items():
            if len(taken) == limit:
                return self._noted(consumer, taken)
            if pending.again_at <= now and seq in life.messages:
                pending.count += 1
                pending.again_at = now + self.bounds.ack_wait_s
                taken.append(Delivery(life.number, life.messages[seq], pending.count))
        for seq, message in life.messages.items():
            if seq < consumer.next_seq or message.queue != queue:
                continue
            if len(taken) == limit or len(consumer.pending) >= self.bounds.max_ack_pending:
                break
            consumer.next_seq = seq + 1
            consumer.pending[seq] = _Pending(1, now + self.bounds.ack_wait_s)
            taken.append(Delivery(life.number, message, 1))
        return self._noted(consumer, taken)

    def _noted(self, consumer: _Consumer, taken: list[Delivery]) -> list[Delivery]:
        consumer.delivered += len(taken)
        for delivery in taken:
            delivery.message.deliveries += 1
        return taken

    def _postpone(self, delivery: Delivery, delay_s: float) -> None:
        life = self._of(delivery)
        if life is None:
            return
        pending = self._consumer(life, delivery).pending.get(delivery.message.seq)
        if pending is not None and pending.count == delivery.count:
            pending.again_at = self.now() + delay_s

    def _of(self, delivery: Delivery) -> _Life | None:
        """The life of the delivery, if that is the present one and the message the same."""
        life = self._life
        if life is None or life.number != delivery.life:
            return None
        return life if life.messages.get(delivery.message.seq) is delivery.message else None

    def _consumer(self, life: _Life, delivery: Delivery) -> _Consumer:
        return life.consumers.get(delivery.message.queue) or _Consumer()

    def _forget_ids(self, life: _Life, now: float) -> None:
        oldest = now - self.bounds.duplicate_window_s
        while life.order and life.order[0][0] < oldest:
            at, message_id = life.order.popleft()
            if message_id in life.seen and life.seen[message_id][0] == at:
                del life.seen[message_id]

    def _tell(self) -> None:
        for listener in list(self.changed):
            listener()
