"""Publishing: accepted claims go into the ready queue, after their commit, and are tracked.

Every message is confirmed by the queue or published again. A time-out means unknown, so it goes out
again under the same id. An answer that calls it a duplicate is not trusted: the queue remembers ids
for longer than messages, and may have lost the message; unless it holds that very one, another id
is used. A full queue is back-pressure: one message at a time tries whether there is room again, and
claiming stops when the outbox is full.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from horolog.application.measuring import UNMEASURED, Measures
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.headroom import Headroom
from horolog.application.scanner.outbox import Message, Outbox
from horolog.application.scanner.progress import Progress
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.sent import GRACE_S, Place, SentMessages
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory
from horolog.application.tracing import MOST_LINKS, NO_SPAN, UNTRACED, Span, Spans
from horolog.domain.record import record

log = logging.getLogger("horolog.scanner")

IN_FLIGHT = 256
"""The most messages that are published before their answers are waited for."""

FIRST_PAUSE_S = 0.1

Answer = Literal["stored", "duplicate", "refused", "too_large", "unknown"]


@record
class Receipt:
    """What the queue answered. ``place`` is where a stored message is, or the duplicate is said to
    be; ``detail`` says why it was refused."""

    answer: Answer
    place: Place | None = None
    detail: str = ""


class ReadyQueue(Protocol):
    """The ready queue. Errors: ``QueueUnavailable``, after which nothing is known."""

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """Publishes in order, all at once, and waits for the answers; creates what is missing."""
        ...

    async def holds(self, places: Sequence[Place]) -> list[bool]:
        """Whether just these messages are still in the stream."""
        ...


class MarksPublished(Protocol):
    async def mark_published(
        self, instance: str, tokens: Mapping[int, int], positions: Mapping[int, int]
    ) -> None:
        """Writes publishing positions of partitions that ``instance`` leads under its token; others
        are left alone. Errors: ``StoreUnavailable``."""
        ...


class Publishing:
    """Empties the outbox; one :meth:`step` is one round of messages."""

    def __init__(
        self,
        territory: Territory,
        outbox: Outbox,
        progress: Progress,
        sent: SentMessages,
        republishing: Republishing,
        headroom: Headroom,
        *,
        queue: ReadyQueue,
        marks: MarksPublished,
        clock: Clock,
        settings: ScannerSettings,
        signals: Signals,
        measures: Measures = UNMEASURED,
        spans: Spans = UNTRACED,
    ) -> None:
        self._measures = measures
        self._spans = spans
        self._territory = territory
        self._outbox = outbox
        self._progress = progress
        self._sent = sent
        self._republishing = republishing
        self._headroom = headroom
        self._queue = queue
        self._marks = marks
        self._clock = clock
        self._settings = settings
        self._signals = signals
        self._allowance = IN_FLIGHT
        self._pause_s = 0.0
        self._silent = False
        self._unmarked: dict[int, int] = {}

    async def step(self) -> float | None:
        """Publishes a round; seconds to the next, ``None`` when the outbox is empty."""
        messages = self._outbox.take(self._allowance)
        if not messages:
            return None
        started = self._clock.monotonic()
        span = self._begin(messages) if self._spans.tracing else NO_SPAN
        try:
            receipts = await self._queue.publish(messages)
        except BaseException:
            self._outbox.put_back(messages)
            span.end("queue_away")
            raise
        span.end()
        self._measures.observe("publish_seconds", self._clock.monotonic() - started)
        self._measures.observe("publish_messages", len(messages))
        unconfirmed, self._pause_s = await self._settle(messages, receipts)
        self._outbox.put_back(unconfirmed)
        return self._pause_s

    def _begin(self, messages: Sequence[Message]) -> Span:
        """A span for the round, linked to the claims that it publishes; its messages name it."""
        claims = {run.claimed_in for message in messages for run in message.runs if run.claimed_in}
        span = self._spans.begin(
            "horolog.publish",
            kind="producer",
            links=sorted(claims)[:MOST_LINKS],
            attributes={
                "messaging.system": "nats",
                "messaging.batch.message_count": len(messages),
            },
        )
        for message in messages:
            message.traceparent = span.traceparent
        return span

    async def mark(self) -> None:
        """Writes down how far publishing has come, if it has come further."""
        self._unmarked.update(self._progress.take_marks())
        terms = self._territory.terms
        positions = {p: at for p, at in self._unmarked.items() if p in terms}
        self._unmarked = {}
        if not positions:
            return
        tokens = {partition: terms[partition].token for partition in positions}
        try:
            await self._marks.mark_published(self._territory.instance, tokens, positions)
        except BaseException:
            self._unmarked = positions | self._unmarked
            raise
        self._signals.emit("marked")

    async def _settle(
        self, messages: list[Message], receipts: list[Receipt]
    ) -> tuple[list[Message], float]:
        """Takes in the answers; the messages to publish again, and the pause before that."""
        unconfirmed: list[Message] = []
        doubtful: list[tuple[Message, Place]] = []
        refused = silent = ""
        for message, receipt in zip(messages, receipts, strict=True):
            if receipt.answer == "stored" and receipt.place is not None:
                self._republishing.these(self._sent.arrived(receipt.place))
                self._stored(message, receipt.place)
            elif receipt.answer == "duplicate" and receipt.place is not None:
                doubtful.append((message, receipt.place))
            elif receipt.answer == "too_large":
                self._abandon(message, receipt.detail)
            else:
                unconfirmed.append(message)
                if receipt.answer == "refused":
                    refused = receipt.detail
                else:
                    silent = receipt.detail
        if silent and not self._silent:
            log.warning("the ready queue did not take a message (%s): it is sent again", silent)
        self._silent = bool(silent)
        if doubtful:
            try:
                held = await self._queue.holds([place for _, place in doubtful])
            except BaseException:
                # What nobody could say of is asked again: in no hands it would count as on its way
                # for ever, and never be looked for.
                self._outbox.put_back([message for message, _ in doubtful] + unconfirmed)
                raise
            for (message, place), there in zip(doubtful, held, strict=True):
                if there:
                    self._stored(message, place)
                else:
                    message.retry += 1
                    unconfirmed.append(message)
                    self._signals.emit("false_duplicate")
        return unconfirmed, self._pace(unconfirmed, refused)

    def _pace(self, unconfirmed: list[Message], refused: str) -> float:
        """How long to wait, and with how many messages to go on."""
        if not unconfirmed:
            self._allowance = IN_FLIGHT
            return 0.0
        if not refused:
            self._signals.emit("unconfirmed", len(unconfirmed))
            return FIRST_PAUSE_S
        self._signals.emit("refused", len(unconfirmed))
        if self._allowance > 1:
            log.warning("the ready queue takes no more messages for now: %s", refused)
        self._allowance = 1
        return min(self._settings.max_backoff_s, max(FIRST_PAUSE_S, self._pause_s * 2))

    def _stored(self, message: Message, place: Place) -> None:
        self._outbox.confirm(message)
        self._headroom.sent(message.queue, len(message.runs))
        expires = self._clock.monotonic() + self._settings.claim_window_s + GRACE_S
        for run in message.runs:
            self._sent.note(run.occurrence, run.attempt, place, expires=expires, copies=run.copy)
        self._signals.emit("messages")
        self._signals.emit("published", len(message.runs))

    def _abandon(self, message: Message, detail: str) -> None:
        """Nothing is gained by trying again at once: the window's end tries it anew, each time
        counted and logged, until somebody raises the queue's limit or makes the payload smaller."""
        log.error("message %s cannot be published: %s", message.message_id, detail)
        self._outbox.abandon(message)
        self._signals.emit("too_large", len(message.runs))
