"""The scanner: eleven loops over one state, each of which repeats one step.

    leadership   renews leases, elects, releases          every third of a lease
    sweep        reads the index into the agenda          every sweep, and on news
    claiming     appends Claimed for what is due          when it is due
    publishing   empties the outbox into the queue        when there is something in it
    republishing what a leader or the queue left out      after a takeover, after a loss
    looking      ended windows and leases                 every look
    serving      who is next in a lane that was full      when a slot is free
    gauging      how much the ready queues hold           while one is nearly full
    receiving    what clients gave in transactions        when one is committed
    watching     missed deadlines                         every 5 seconds, by one scanner for all
    raising      alerts, by the rules of their owners     every 5 seconds

A step that finds the store or the queue away is repeated after a pause; nothing is lost by that,
only late. Every other failure is a defect and ends the process, whose partitions others take over.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from itertools import pairwise

from horolog.application.alerting.raising import Raising
from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.claiming import Claiming, Turn
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.headroom import Gauging, Headroom
from horolog.application.scanner.lanes import WaitingLanes
from horolog.application.scanner.leadership import TRUSTED_PART, Leadership
from horolog.application.scanner.looking import Looking
from horolog.application.scanner.news import (
    HearsNews,
    InboxFilled,
    LaneFree,
    Reread,
    ScannersChanged,
    read_news,
)
from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.publishing import Publishing
from horolog.application.scanner.receiving import Receiving
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.serving import Serving
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.sweep import Sweep
from horolog.application.scanner.territory import Territory
from horolog.application.scanner.watching import Watching
from horolog.application.scanner.wheel import Entry
from horolog.application.standing import Standing
from horolog.domain.errors import HorologError, QueueUnavailable, StoreUnavailable

log = logging.getLogger("horolog.scanner")

FIRST_PAUSE_S = 0.05
NEVER_S = 3600.0

GROWTHS = 3
"""After so many renewals with more to publish than before each, the queue does not keep up."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loops repeat, and the state that they share."""

    territory: Territory
    agenda: Agenda
    outbox: Outbox
    leadership: Leadership
    sweep: Sweep
    claiming: Claiming
    publishing: Publishing
    republishing: Republishing
    looking: Looking
    serving: Serving
    lanes: WaitingLanes
    gauging: Gauging
    headroom: Headroom
    watching: Watching
    raising: Raising
    receiving: Receiving


class Scanner:
    """Runs until it is told to stop. ``details`` is what its heartbeat says about it."""

    def __init__(
        self,
        parts: Parts,
        news: HearsNews,
        clock: Clock,
        settings: ScannerSettings,
        signals: Signals,
        details: MutableMapping[str, object],
    ) -> None:
        self.parts = parts
        self.signals = signals
        self._leadership = parts.leadership
        self._sweep = parts.sweep
        self._claiming = parts.claiming
        self._publishing = parts.publishing
        self._republishing = parts.republishing
        self._looking = parts.looking
        self._serving = parts.serving
        self._gauging = parts.gauging
        self._headroom = parts.headroom
        self._outbox = parts.outbox
        self._news = news
        self._clock = clock
        self._settings = settings
        self._details = details
        self._stopping = asyncio.Event()
        self._wakes = {
            name: asyncio.Event()
            for name in (
                "lead", "sweep", "claim", "claim_full", "publish", "republish", "serve", "gauge",
                "receive",
            )
        }  # fmt: skip
        self._still = asyncio.Event()
        self._unpublished: deque[int] = deque([0], maxlen=GROWTHS + 1)

    async def run(self, stop: asyncio.Event) -> None:
        """Scans until ``stop`` is set, then publishes what it has claimed and gives back what it
        leads."""
        parts = self.parts
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._lead, self._wakes["lead"]))
            group.create_task(self._repeat(self._read, self._wakes["sweep"]))
            group.create_task(self._repeat(self._claim, self._wakes["claim"]))
            group.create_task(self._repeat(self._claim_full, self._wakes["claim_full"]))
            group.create_task(self._repeat(self._republish, self._wakes["republish"]))
            group.create_task(self._repeat(self._look, self._still))
            group.create_task(self._repeat(parts.watching.step, self._still))
            group.create_task(self._repeat(parts.raising.step, self._still))
            group.create_task(self._repeat(self._publish, self._wakes["publish"]))
            group.create_task(self._repeat(self._mark, self._still))
            group.create_task(self._repeat(self._serve, self._wakes["serve"]))
            group.create_task(self._repeat(self._gauge, self._wakes["gauge"]))
            group.create_task(self._repeat(parts.receiving.step, self._wakes["receive"]))
            group.create_task(self._listen())
            try:
                await stop.wait()
            finally:
                # Also where one of the loops failed: no other one may outlive it.
                self._stop()
        await self._leave()

    def account(self) -> dict[str, object]:
        """What there is to say about it, for heartbeats and metrics."""
        parts = self.parts
        return {
            "partitions": len(parts.territory.terms),
            "known": len(parts.agenda),
            "wheel": len(parts.agenda.wheel),
            "waiting": parts.agenda.waiting,
            "held_back": parts.agenda.held_back,
            "full_lanes": len(parts.lanes),
            "full_queues": parts.headroom.closed,
            "unpublished": len(parts.outbox),
            "unpublished_grows": self._grows(),
            "lateness_s": round(self._claiming.lateness_s, 6),
            "queue_away": self._looking.queue_away,
            "counts": dict(self.signals.counts),
        }

    def standing(self) -> Standing:
        """Whether it can claim what is due; from any thread."""
        parts, troubles = self.parts, list[str]()
        trusted = [term.trusted_until for term in list(parts.territory.terms.values())]
        now, lease_s = self._clock.monotonic(), self._settings.lease_s
        ages = [now - (until - lease_s * TRUSTED_PART) for until in trusted]
        if self._leadership.renewed_at is None or (
            now - self._leadership.renewed_at > lease_s * TRUSTED_PART
        ):
            troubles.append("the leases could not be renewed: Postgres is away")
        if self._looking.queue_away:
            troubles.append("the ready queue cannot be reached: NATS is away")
        gauges = {
            "lease_age_seconds": max(ages, default=0.0),
            "leases": float(len(trusted)),
            "wheel_entries": float(len(parts.agenda.wheel)),
            "due_entries": float(parts.agenda.waiting),
            "unpublished_runs": float(len(parts.outbox)),
        }
        return Standing(troubles, gauges)

    def _grows(self) -> bool:
        """Whether there was more to publish with each renewal of late."""
        counts = list(self._unpublished)
        return len(counts) > GROWTHS and all(a < b for a, b in pairwise(counts))

    async def _lead(self) -> float:
        self._unpublished.append(len(self._outbox))
        self._details.update(self.account())
        led = set(self.parts.territory.terms)
        pause = await self._leadership.step()
        if led != set(self.parts.territory.terms):
            self._wake("sweep", "republish", "serve", "receive")
        self._wake("claim")  # the leases are trusted for longer now
        return pause

    # Who has made progress wakes who can go on from there, and nobody else: two loops that woke
    # each other for nothing would never rest.

    async def _read(self) -> float:
        pause = await self._sweep.step()
        if self._sweep.taken:
            self._wake("claim", "claim_full")
        return pause

    async def _claim(self) -> float:
        return self._after(await self._claiming.step())

    async def _claim_full(self) -> float:
        """A second batch while the first is in the log, but only a full one: small ones would only
        be more commits."""
        turn = await self._claiming.step(least=self._settings.claim_batch)
        self._after(turn)
        return 0.0 if turn.drawn else NEVER_S

    def _after(self, turn: Turn) -> float:
        if turn.drawn:
            self._wake("publish", "claim_full")
            if self._sweep.unfinished:
                self._wake("sweep")
            if self._serving.refusals:
                self._wake("serve")
            if self._headroom.next_look_s() is not None:
                self._wake("gauge")
        return NEVER_S if turn.wait_s is None else turn.wait_s

    async def _serve(self) -> float:
        pause = await self._serving.step()
        if self._serving.brought:
            self._wake("claim")
        return pause

    async def _gauge(self) -> float:
        pause = await self._gauging.step()
        if self._gauging.opened:
            self._wake("claim", "claim_full", "sweep")
        return NEVER_S if pause is None else pause

    async def _publish(self) -> float:
        held_back = self._outbox.room == 0
        try:
            pause = await self._publishing.step()
        finally:  # also what a step had found before it failed
            if held_back and self._outbox.room:
                self._wake("claim", "claim_full")
            if self._republishing.pending:
                self._wake("republish")
        return NEVER_S if pause is None else pause

    async def _republish(self) -> float:
        pause = await self._republishing.step()
        if len(self._outbox):
            self._wake("publish")
        return NEVER_S if pause is None else pause

    async def _look(self) -> float:
        try:
            return await self._looking.step()
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """What was found to be missing in the queue goes there."""
        if self._republishing.pending:
            self._wake("republish")
        if len(self._outbox):
            self._wake("publish")

    async def _mark(self) -> float:
        await self._publishing.mark()
        return self._settings.mark_interval_s

    async def _listen(self) -> None:
        def heard(payload: str) -> None:
            for item in read_news(payload):
                match item:
                    case ScannersChanged():
                        self._wake("lead")
                    case Reread():
                        self._sweep.reread(item.partition, item.due_us)
                        self._wake("sweep")
                    case LaneFree():
                        if self._serving.told(item.name):
                            self._wake("serve")
                    case InboxFilled():
                        if self.parts.receiving.told(item.partition):
                            self._wake("receive")
                    case Entry():
                        self._sweep.hear(item)
            self._wake("claim")

        def connected() -> None:
            self._sweep.reload()
            self._wake("sweep", "receive")

        await self._news.hear(heard, connected, self._stopping)

    async def _repeat(self, step: Callable[[], Awaitable[float]], wake: asyncio.Event) -> None:
        """The step, again and again: after the pause it asks for, or when it is woken."""
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            wake.clear()
            try:
                wait_s = await step()
                pause_s = FIRST_PAUSE_S
            except HorologError as error:
                wait_s = pause_s = min(self._settings.max_backoff_s, pause_s * 2)
                self._note(error)
                await self._clock.wait(self._stopping, wait_s)
                continue
            if wait_s > 0:
                await self._clock.wait(wake, wait_s)
            else:
                await asyncio.sleep(0)

    def _note(self, error: HorologError) -> None:
        kind = {StoreUnavailable: "store_away", QueueUnavailable: "queue_away"}
        name = next((n for k, n in kind.items() if isinstance(error, k)), "refused_step")
        log.warning("%s", error)
        self.signals.emit(name)

    def _wake(self, *names: str) -> None:
        for name in names:
            self._wakes[name].set()

    def _stop(self) -> None:
        self._stopping.set()
        self._still.set()
        self._wake(*self._wakes)

    async def _leave(self) -> None:
        """Drains the outbox for a moment; a successor publishes what is left."""
        deadline = self._clock.monotonic() + self._settings.drain_s
        try:
            while len(self._outbox) and self._clock.monotonic() < deadline:
                pause_s = await self._publishing.step()
                if pause_s is None:
                    break  # whatever the outbox counts, there is nothing in it to wait for
                await asyncio.sleep(min(pause_s, self._settings.max_backoff_s))
        except QueueUnavailable as error:
            self._note(error)
        try:
            await self._publishing.mark()
            await self._leadership.resign()
        except StoreUnavailable as error:
            # The leases end by themselves.
            self._note(error)
