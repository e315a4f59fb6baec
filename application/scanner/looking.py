"""Looking: claims whose window has ended, and attempts whose lease has.

An attempt that ran out of its lease is lost, and retried or dead-lettered by the job's policy. A
claim that nobody has attempted is either waiting in the queue or forgotten by it. If the queue
still holds its message the window is extended, and doubles with each look: a worker outage never
multiplies messages. Only if it does not, the claim is published again.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from horolog.application.ready import decode
from horolog.application.scanner.claiming import UNDECIDABLE, Claiming, id_of
from horolog.application.scanner.clock import Clock, DatabaseTime
from horolog.application.scanner.deciding import Proposal, Terms, decide_occurrence
from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.publishing import ReadyQueue
from horolog.application.scanner.reading import Reading
from horolog.application.scanner.republishing import Look, ReadsLooks, Republishing
from horolog.application.scanner.sent import GRACE_S, Place, Sent, SentMessages
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.sweep import BEGINNING, FIRST, Range
from horolog.application.scanner.territory import Territory
from horolog.application.states import DueOccurrence
from horolog.domain.errors import QueueUnavailable
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.origin import Origin

log = logging.getLogger("horolog.scanner")

PAGE = 500
"""The most rows looked at in one step."""

SCAN_PAGE = 512


@dataclass(frozen=True, slots=True)
class QueueState:
    """The stream: ``life`` tells one making of it from the next."""

    life: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Held:
    """A message as the stream holds it."""

    place: Place
    data: bytes


@dataclass(frozen=True, slots=True)
class Extension:
    """A claim, at a version, whose next look comes ``after_s`` seconds from now."""

    id: UUID
    version: int
    after_s: float


class SeesQueue(ReadyQueue, Protocol):
    """Errors: ``QueueUnavailable``."""

    async def look(self) -> QueueState:
        """The stream as it is, made anew if it was gone, with the consumers of its queues."""
        ...

    async def contents(self, life: str, first_seq: int, count: int) -> list[Held]:
        """The messages with sequence numbers from ``first_seq`` on, ``count`` numbers in all."""
        ...


class Extends(ReadsLooks, Protocol):
    async def extend(self, extensions: Sequence[Extension]) -> None:
        """Moves the looks of claims that are still at their version. Errors:
        ``StoreUnavailable``."""
        ...


class Looking:
    """Looks after what is unfinished; one :meth:`step` is one page of every partition led."""

    def __init__(
        self,
        territory: Territory,
        outbox: Outbox,
        sent: SentMessages,
        claiming: Claiming,
        republishing: Republishing,
        *,
        queue: SeesQueue,
        index: Extends,
        rows: Reading,
        clock: Clock,
        time: DatabaseTime,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._outbox = outbox
        self._sent = sent
        self._claiming = claiming
        self._republishing = republishing
        self._queue = queue
        self._index = index
        self._rows = rows
        self._clock = clock
        self._time = time
        self._settings = settings
        self._signals = signals
        self._origin = Origin(actor=f"scanner {territory.instance}")
        self._life: str | None = None
        self._cursors: dict[int, tuple[int, UUID]] = {}
        self._next_scan = 0.0
        self.queue_away: str = ""
        """Why the queue cannot be looked at; empty while it can."""

    async def step(self) -> float:
        """Looks at the queue and at one page of ended windows and leases; seconds to the next."""
        await self.look_at_queue()
        more = await self._look_at_rows()
        self._signals.emit("looked")
        return 0.0 if more else self._settings.look_interval_s

    async def look_at_queue(self) -> None:
        """Notices a stream that was made anew, or that lost its end."""
        # As it was before we asked: what is confirmed while the answer travels lies behind it.
        highest = dict(self._sent.highest)
        try:
            state = await self._queue.look()
        except QueueUnavailable as error:
            self.queue_away = str(error)
            return
        self.queue_away = ""
        before, self._life = self._life, state.life
        shrunk = state.last_seq < highest.get(state.life, 0)
        self._sent.expire(self._clock.monotonic())
        if before is None or (before == state.life and not shrunk):
            return
        log.warning(
            "the ready stream was %s: publishing again what it may have lost",
            "cut short" if shrunk else "made anew",
        )
        self._signals.emit("stream_lost")
        lost = self._sent.lost_since(state.life, state.last_seq)
        if shrunk:
            self._republishing.these(lost)
        else:
            self._republishing.everything()

    async def _look_at_rows(self) -> bool:
        """One page; whether there is more that has ended."""
        tokens = self._territory.trusted(self._clock.monotonic())
        if not tokens or not self._time.known:
            return False
        until = self._time.now_us()
        starts = {p: self._cursors.get(p, (BEGINNING, FIRST)) for p in tokens}
        ranges = [Range(partition, *start, until) for partition, start in starts.items()]
        limit = max(16, PAGE // len(ranges))
        pages = await self._index.looks(ranges, limit)
        self._cursors = {
            span.partition: (page[-1].due_us, page[-1].id)
            for span, page in zip(ranges, pages, strict=True)
            if len(page) == limit
        }
        looks = [look for page in pages for look in page]
        if looks:
            await self._attend(looks, tokens)
        return bool(self._cursors)

    async def _attend(self, looks: list[Look], tokens: dict[int, int]) -> None:
        rows = await self._rows.due([look.id for look in looks])
        terms = Terms(self._time.now(), tokens, self._settings.claim_window_s, self._origin)
        proposals: list[Proposal] = []
        claims: list[DueOccurrence] = []
        for row in rows:
            if not isinstance(row, DueOccurrence) or row.due_at > terms.now:
                continue
            try:
                answer = decide_occurrence(row, terms)
            except UNDECIDABLE:
                self._rows.set_aside(id_of(row))
                continue
            if isinstance(answer, Proposal):
                proposals.append(answer)
            elif row.occurrence.state == "claimed":
                claims.append(row)
        await self._claiming.append(proposals, tokens)
        await self._look_after(claims)

    async def _look_after(self, claims: list[DueOccurrence]) -> None:
        """Claims whose window has ended: still in the queue, or published again."""
        known, extensions = await self._known(claims)
        there = await self._there([sent.place for _, sent in known])
        for (row, sent), held in zip(known, there, strict=True):
            if held:
                extensions.append(self._extended(row.occurrence, sent))
            else:
                extensions.append(self._publish_again(row, sent.copies + 1))
        await self._index.extend(extensions)

    async def _known(
        self, claims: list[DueOccurrence]
    ) -> tuple[list[tuple[DueOccurrence, Sent]], list[Extension]]:
        """The claims whose message we know, and what to do about the others."""
        window_s = self._settings.claim_window_s
        extensions: list[Extension] = []
        strangers: list[DueOccurrence] = []
        known: list[tuple[DueOccurrence, Sent]] = []
        for row in claims:
            state = row.occurrence
            sent = self._sent.find(state.id, state.attempt)
            if (state.id, state.attempt) in self._outbox or self.queue_away:
                # On its way already, or nobody can tell: the queue's return is noticed elsewhere.
                extensions.append(Extension(state.id, state.version, window_s))
            elif sent is None:
                strangers.append(row)
            else:
                known.append((row, sent))
        if strangers:
            scanned = await self._scan()
            for row in strangers:
                state = row.occurrence
                sent = self._sent.find(state.id, state.attempt)
                if sent is not None:
                    known.append((row, sent))
                elif scanned:
                    extensions.append(self._publish_again(row, 1))
                else:
                    pause_s = self._settings.look_interval_s
                    extensions.append(Extension(state.id, state.version, pause_s))
        return known, extensions

    async def _there(self, places: list[Place]) -> list[bool]:
        """Whether the messages are in the stream; runs of one message are asked for once."""
        different = list(dict.fromkeys(places))
        held = dict(zip(different, await self._queue.holds(different), strict=True))
        return [held[place] for place in places]

    def _extended(self, state: OccurrenceState, sent: Sent) -> Extension:
        window_s = min(
            self._settings.max_window_s, self._settings.claim_window_s * 2 ** min(sent.looks, 20)
        )
        self._sent.prolong(state.id, self._clock.monotonic() + window_s + GRACE_S)
        self._signals.emit("extended")
        return Extension(state.id, state.version, window_s)

    def _publish_again(self, row: DueOccurrence, copy: int) -> Extension:
        state = row.occurrence
        self._sent.forget(state.id)
        # Another id: the queue may remember the old one for longer than its message.
        self._outbox.add(
            row.job,
            state,
            batch=None,
            lost=row.lost,
            replayed=row.replayed,
            since=row.since,
            copy=copy,
        )
        self._signals.emit("republished")
        return Extension(state.id, state.version, self._settings.claim_window_s)

    async def _scan(self) -> bool:
        """Learns from the stream where the messages of claims are; whether it was gone through.

        At most so often that it takes half of the time: a long stream is walked seldom.
        """
        started = self._clock.monotonic()
        if started < self._next_scan:
            return False
        state = await self._queue.look()
        seq = state.first_seq
        while seq <= state.last_seq:
            for held in await self._queue.contents(state.life, seq, SCAN_PAGE):
                self._learn(held, started)
            seq += SCAN_PAGE
        self._signals.emit("scanned")
        now = self._clock.monotonic()
        self._next_scan = now + max(self._settings.look_interval_s, now - started)
        return True

    def _learn(self, held: Held, started: float) -> None:
        try:
            runs = decode(held.data)
        except ValueError:
            return  # not ours; whoever pulls it says so
        expires = started + self._settings.max_window_s + GRACE_S
        for run in runs:
            known = self._sent.find(run.occurrence, run.attempt)
            if known is None:
                self._sent.note(run.occurrence, run.attempt, held.place, expires=expires)
