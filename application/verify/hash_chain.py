"""The hash chain: no event was changed, taken away or put in since it was appended.

    content of a link   sha256 over its events: position, time, stream, version, topic, state
    digest of a link    sha256 over the digest before it, its positions, its count, its content

The chain is made within each append (migrations/0003) and computed here again, with nothing of that
code. Whoever may write to the tables can recompute it all; a checkpoint that is kept elsewhere says
what the digest was, and tells on them.

Where occurrences were pruned, what is left of a link's content is kept beside it, and the digest of
all of that is in the event which says that they were pruned, which is in the chain itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from struct import pack
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.application.verify.ports import StoredEvent
from horolog.domain.errors import InvalidSetting
from horolog.domain.log_events import OccurrencesPruned

PAGE: Final = 5_000
MOST_KEPT: Final = 1_000

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Link(NamedTuple):
    """One append: its positions, how many events it had, and its hashes. ``left`` is what pruning
    has left of it, count and content, where it has taken any of its events."""

    position_to: int
    position_from: int
    events: int
    content: bytes
    digest: bytes
    left: tuple[int, bytes] | None


class PrunedLink(NamedTuple):
    """What is left of a link's content after a range was pruned."""

    position_to: int
    events: int
    content: bytes


class ReadsChain(Protocol):
    """Errors: ``StoreUnavailable``."""

    def end(self) -> int:
        """The position of the last link; every event up to it is visible. 0 without a link."""
        ...

    def links(self, after: int, limit: int) -> Sequence[Link]:
        """Links with a last position above ``after``, in their order."""
        ...

    def pruned_links(self, pruning: UUID, after: int, limit: int) -> Sequence[PrunedLink]:
        """What one pruning has left of the links that it took events from."""
        ...

    def page(self, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events with a position above ``after``, in the total order."""
        ...

    def accounts(self) -> Sequence[OccurrencesPruned]:
        """What the log says of ranges that were pruned."""
        ...


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The chain's digest at a position, to be kept where the database's owner cannot write."""

    namespace: str
    position: int
    digest: str
    taken_at: datetime


@dataclass(frozen=True, slots=True)
class Break:
    """Where the chain does not hold: the positions of the append, and what is wrong."""

    position_from: int
    position_to: int
    message: str

    def __str__(self) -> str:
        return f"positions {self.position_from} to {self.position_to}: {self.message}"


@dataclass(slots=True)
class ChainReport:
    """What was counted; at most ``MOST_KEPT`` of ``break_count`` are held."""

    position: int = 0
    links: int = 0
    events: int = 0
    pruned: int = 0
    digest: str = ""
    break_count: int = 0
    breaks: list[Break] = field(default_factory=list[Break])

    @property
    def ok(self) -> bool:
        return self.break_count == 0

    def broken(self, position_from: int, position_to: int, message: str) -> None:
        self.break_count += 1
        if len(self.breaks) < MOST_KEPT:
            self.breaks.append(Break(position_from, position_to, message))

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


Progress = Callable[[int], None]


def verify_chain(
    chain: ReadsChain, *, against: Checkpoint | None = None, progress: Progress | None = None
) -> ChainReport:
    """Computes the whole chain again, in bounded memory, beside a running system.

    ``against`` a checkpoint, the digest at its position must be what it was. Raises
    ``StoreUnavailable``.
    """
    report = ChainReport(position=chain.end())
    events = _Events(chain)
    before = b""
    met = against is None or against.position == 0
    for link in _links(chain, report.position):
        _check(report, events, link, before)
        before = link.digest
        report.links += 1
        if against is not None and link.position_to == against.position:
            met = True
            if link.digest.hex() != against.digest:
                report.broken(
                    link.position_from, link.position_to, "the digest is not the checkpoint's"
                )
        if progress is not None and report.links % 1_000 == 0:
            progress(link.position_to)
    for stray in events.until(report.position):
        _stray(report, stray)
    if not met and against is not None:
        report.broken(
            against.position, against.position, "the log has no append that ends at the checkpoint"
        )
    for account in chain.accounts():
        _check_account(report, chain, account)
    report.digest = before.hex()
    return report


def checkpoint(report: ChainReport, namespace: str, now: datetime) -> Checkpoint:
    """What to keep elsewhere. Raises ``InvalidSetting`` for a chain that does not hold."""
    if not report.ok:
        raise InvalidSetting("a chain that does not hold gives no checkpoint")
    return Checkpoint(namespace, report.position, report.digest, now)


def event_bytes(event: StoredEvent) -> bytes:
    """What is hashed of an event: all that is stored of it."""
    topic, state = event.topic.encode(), event.state
    return b"".join(
        (
            pack("!qq", event.position, (event.recorded_at - _EPOCH) // _MICROSECOND),
            event.stream.bytes,
            pack("!ii", event.version, len(topic)),
            topic,
            pack("!i", len(state)),
            state,
        )
    )


def digest_of(before: bytes, link: Link) -> bytes:
    """The digest of a link that follows one with the digest ``before``."""
    head = pack("!qqi", link.position_from, link.position_to, link.events)
    return sha256(before + head + link.content).digest()


def rows_digest(rows: Sequence[PrunedLink], hasher: Any) -> None:
    """Adds rows of what pruning has left to a hash over all of them."""
    for row in rows:
        hasher.update(pack("!qi", row.position_to, row.events) + row.content)


def _check(report: ChainReport, events: "_Events", link: Link, before: bytes) -> None:
    place = (link.position_from, link.position_to)
    if digest_of(before, link) != link.digest:
        report.broken(
            *place, "it does not follow the link before: a link was changed, taken away or put in"
        )
    hasher, count = sha256(), 0
    for event in events.until(link.position_to):
        if event.position < link.position_from:
            _stray(report, event)
            continue
        hasher.update(event_bytes(event))
        count += 1
    report.events += count
    expected, content = link.left or (link.events, link.content)
    report.pruned += link.events - expected
    if count != expected:
        report.broken(*place, f"there are {count} events where {expected} should be")
    elif hasher.digest() != content:
        report.broken(*place, "an event is not what was appended")


def _stray(report: ChainReport, event: StoredEvent) -> None:
    report.broken(
        event.position,
        event.position,
        f"the event {event.stream}:{event.version} was not appended, but put in",
    )


def _check_account(report: ChainReport, chain: ReadsChain, account: OccurrencesPruned) -> None:
    if account.links_sha256 is None or account.correlation is None:
        return
    hasher, after, last = sha256(), 0, 0
    while rows := chain.pruned_links(account.correlation, after, PAGE):
        rows_digest(rows, hasher)
        after = last = rows[-1].position_to
    if hasher.hexdigest() != account.links_sha256:
        report.broken(
            0,
            last,
            f"what is left of the links from before {account.until.isoformat()} was pruned is not"
            " what the log says of it",
        )


def _links(chain: ReadsChain, end: int) -> Iterator[Link]:
    after = 0
    while after < end:
        page = chain.links(after, PAGE)
        for link in page:
            if link.position_to > end:
                return
            yield link
        if not page:
            return
        after = page[-1].position_to


class _Events:
    """The events in their order, up to one position and then to the next."""

    def __init__(self, chain: ReadsChain) -> None:
        self._chain = chain
        self._page: Sequence[StoredEvent] = ()
        self._next = 0
        self._after = 0

    def until(self, position: int) -> Iterator[StoredEvent]:
        while True:
            if self._next == len(self._page):
                self._page, self._next = self._chain.page(self._after, PAGE), 0
                if not self._page:
                    return
                self._after = self._page[-1].position
            event = self._page[self._next]
            if event.position > position:
                return
            self._next += 1
            yield event
