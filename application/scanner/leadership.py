"""Who scans which partition: heartbeats, elections and releases, by the database's clock.

     alone          second instance joins         first one is killed
    A: 0..63   →   A releases 32..63,        →   its lease ends; B elects itself
                   B elects itself there          in 0..31: Elected, a newer token

Every instance announces itself and takes its fair share, no more: it elects itself where nobody
leads, and gives back what it has beyond its share when another one joins. An election appends
Elected, whose version in the partition's stream is the fencing token. Nothing here has to be right
for occurrences to fire once: that is the fence's part. It has to be right for them to fire at all.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from horolog.application.decision import decide_on_partition
from horolog.application.log import Fences
from horolog.application.scanner.claiming import Appends
from horolog.application.scanner.clock import Clock, DatabaseTime
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Term, Territory
from horolog.domain.errors import StoreUnavailable
from horolog.domain.origin import Origin
from horolog.domain.partition import PartitionState, decide_election, decide_release, fair_share

TRUSTED_PART = 0.9
"""How much of its lease a leader trusts itself."""

CLOCK_READINGS = 3
"""How often the store's clock is read where it is not known well; the best of them counts."""

_AFTER_S = 0.02
"""Looks this much after the end of a lease, not an instant before it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A partition as the store has it; ``running`` by the database's clock."""

    state: PartitionState
    running: bool
    published: int


@dataclass(frozen=True, slots=True)
class View:
    """What a renewal found: the database's time, the living scanners, and every partition.

    ``others_end_in_s``: seconds until the first running lease of another instance ends, unless that
    renews it; None where nobody else has one.
    """

    now_us: int
    alive: list[str]
    leases: list[Lease]
    others_end_in_s: float | None = None


class KeepsLeases(Protocol):
    """Leases and heartbeats. Errors: ``StoreUnavailable``, after which nothing is known."""

    async def renew(
        self,
        instance: str,
        tokens: Mapping[int, int],
        *,
        lease_s: float,
        details: Mapping[str, object],
    ) -> View:
        """In one round trip: announces the instance, extends the leases that are still its own
        under ``tokens``, and reads all partitions. A lease held by another is never touched."""
        ...

    async def leave(self, instance: str) -> None:
        """The instance is no longer counted among the living."""
        ...

    async def now_us(self) -> int:
        """The store's clock, read with as little before and after it as there can be."""
        ...


class Leadership:
    """Keeps this instance's share of the partitions; one :meth:`step` at a time."""

    def __init__(
        self,
        territory: Territory,
        *,
        leases: KeepsLeases,
        log: Appends,
        clock: Clock,
        time: DatabaseTime,
        settings: ScannerSettings,
        signals: Signals,
        details: Mapping[str, object],
    ) -> None:
        self._territory = territory
        self._leases = leases
        self._log = log
        self._clock = clock
        self._time = time
        self._settings = settings
        self._signals = signals
        self._origin = Origin(actor=f"scanner {territory.instance}")
        self._details = details
        self.renewed_at: float | None = None
        """When the last renewal that succeeded was sent, by the monotonic clock."""

    async def step(self) -> float:
        """Renews, then elects or releases towards the fair share; seconds until the next step."""
        view, trusted_until = await self._renewed()
        mine = self._take_over(view, trusted_until)
        share = share_of(self._territory.instance, view)
        if len(mine) > share:
            given_back = surplus(self._territory.instance, mine, share, view)
            await self._release([mine[number] for number in given_back])
        elif len(mine) < share:
            await self._elect(wanted(self._territory.instance, share - len(mine), view))
        pause_s = self._settings.renew_s
        if len(self._territory.terms) < share:
            pause_s = min(pause_s, self._settings.settle_s)
        if view.others_end_in_s is not None:
            # The living renew theirs long before: whose lease is about to end has fallen silent.
            pause_s = min(pause_s, view.others_end_in_s + _AFTER_S)
        return pause_s

    async def resign(self) -> None:
        """A graceful end: gives back every partition, so that nobody waits for a lease to end."""
        terms = dict(self._territory.terms)
        view, _ = await self._renewed()
        held = {lease.state.partition: lease for lease in view.leases}
        await self._release(
            [
                held[number]
                for number, term in terms.items()
                if held[number].state.token == term.token
            ]
        )
        await self._leases.leave(self._territory.instance)

    async def _renewed(self) -> tuple[View, float]:
        """What the store says, and until when what it says of us may be trusted."""
        sent = self._clock.monotonic()
        tokens = {number: term.token for number, term in self._territory.terms.items()}
        view = await self._leases.renew(
            self._territory.instance, tokens, lease_s=self._settings.lease_s, details=self._details
        )
        was_known = self._time.known
        moved_s = self._time.observe(sent, self._clock.monotonic(), view.now_us)
        self._signals.emit("clock_stepped", int(abs(moved_s) > 1))
        if moved_s or not was_known:
            await self._read_clock()
        self._signals.emit("renewed")
        self.renewed_at = sent
        return view, self._trusted_until(sent)

    async def _read_clock(self) -> None:
        """The time more exactly than a renewal tells it, which commits after it has looked: the
        estimate is behind by all that comes after the look. It stays while renewals agree."""
        for _ in range(CLOCK_READINGS):
            with suppress(StoreUnavailable):
                sent = self._clock.monotonic()
                now_us = await self._leases.now_us()
                self._time.observe(sent, self._clock.monotonic(), now_us)

    def _trusted_until(self, sent: float) -> float:
        """A tenth of the lease is left for the difference in speed of two clocks, and for the way
        of a claim to the log."""
        return sent + self._settings.lease_s * TRUSTED_PART

    def _take_over(self, view: View, trusted_until: float) -> dict[int, Lease]:
        """Our partitions by the store's account, which is the one that counts."""
        mine: dict[int, Lease] = {}
        for lease in view.leases:
            state = lease.state
            if state.instance == self._territory.instance and state.token is not None:
                mine[state.partition] = lease
                term = Term(state.partition, state.token, trusted_until, lease.published)
                self._territory.gain(term)
            elif self._territory.lose(state.partition):
                self._signals.emit("deposed")
        return mine

    async def _elect(self, leases: list[Lease]) -> None:
        """New terms; where another instance was faster the log refuses, and that is all."""
        if not leases:
            return
        instance, lease_s = self._territory.instance, self._settings.lease_s
        decided = [
            decide_on_partition(
                lease.state,
                [decide_election(lease.state, instance, lease_s, origin=self._origin)],
                lease_s,
            )
            for lease in leases
        ]
        sent = self._clock.monotonic()
        answer = await self._log.append([d for d, _ in decided], Fences(instance, {}))
        for lease, (_, state), verdict in zip(leases, decided, answer.verdicts, strict=True):
            if verdict == "accepted":
                assert state.token is not None
                until = self._trusted_until(sent)
                self._territory.gain(Term(state.partition, state.token, until, lease.published))
                self._signals.emit("elected")

    async def _release(self, leases: list[Lease]) -> None:
        """Ends our own terms. Claims of the same moment are either in the log before, and the next
        leader publishes what we did not, or they are refused."""
        if not leases:
            return
        instance = self._territory.instance
        for lease in leases:
            self._territory.lose(lease.state.partition)
        decisions = [
            decide_on_partition(
                lease.state,
                decide_release(lease.state, instance, origin=self._origin),
                self._settings.lease_s,
            )[0]
            for lease in leases
        ]
        answer = await self._log.append(decisions, Fences(instance, {}))
        self._signals.emit("released", answer.verdicts.count("accepted"))


def share_of(instance: str, view: View) -> int:
    """How many partitions the instance should lead."""
    return fair_share(len(view.leases), len(view.alive), rank=_rank(instance, view))


def wanted(instance: str, count: int, view: View) -> list[Lease]:
    """Up to ``count`` partitions without a leader, ours by preference first: instances that start
    together do not all run for the same ones."""
    free = [lease for lease in view.leases if not lease.running]
    free.sort(
        key=lambda lease: (_stranger(lease.state.partition, instance, view), lease.state.partition)
    )
    return free[:count]


def surplus(instance: str, mine: Collection[int], share: int, view: View) -> list[int]:
    """Which of our partitions to give back: those that others prefer."""
    keep = sorted(mine, key=lambda partition: (_stranger(partition, instance, view), partition))
    return keep[share:]


def _rank(instance: str, view: View) -> int:
    return sum(1 for other in view.alive if other < instance)


def _stranger(partition: int, instance: str, view: View) -> bool:
    """Whether another one of the living should rather lead the partition."""
    return partition % max(len(view.alive), 1) != _rank(instance, view)
