"""Where in the stream each claim's message is: what the leader remembers of its own publishing.

It lets the leader ask, when a claim window has ended, whether just that message is still there. It
is a memory and no record: after a takeover it is empty, and one scan of the stream fills it again.
What has not been asked for by its time is finished or running, and is forgotten.
"""

from collections import deque
from dataclasses import dataclass
from uuid import UUID

from horolog.domain.record import record

MOST = 1_000_000
"""The most claims remembered (some 200 bytes each), whatever happens."""

GRACE_S = 60.0
"""How long after the end of its window a claim may still be asked for."""


@record
class Place:
    """A message in one life of the stream."""

    life: str
    seq: int
    message_id: str


@dataclass(slots=True)
class Sent:
    """The message of a claim; ``looks`` counts how often it was found still there, ``copies`` how
    often the claim was published anew."""

    attempt: int
    place: Place
    expires: float
    looks: int = 0
    copies: int = 0


class SentMessages:
    """By occurrence; times are monotonic seconds."""

    def __init__(self) -> None:
        self._sent: dict[UUID, Sent] = {}
        self._order: deque[tuple[float, UUID]] = deque()
        self._longer: dict[UUID, None] = {}
        self.highest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sent)

    def note(
        self, occurrence: UUID, attempt: int, place: Place, *, expires: float, copies: int = 0
    ) -> None:
        """The claim's message is in the stream."""
        self._sent[occurrence] = Sent(attempt, place, expires, copies=copies)
        self._order.append((expires, occurrence))

    def arrived(self, place: Place) -> list[UUID]:
        """A new message got this place. Where others were confirmed there or behind it before, the
        stream has lost its end meanwhile: the claims that went with it."""
        lost: list[UUID] = []
        if place.seq <= self.highest.get(place.life, 0):
            lost = self.lost_since(place.life, place.seq - 1)
        self.highest = {place.life: place.seq}
        return lost

    def prolong(self, occurrence: UUID, expires: float) -> None:
        """The claim's message was found in the stream once more."""
        sent = self._sent.get(occurrence)
        if sent is not None:
            sent.looks += 1
            sent.expires = expires
            self._longer[occurrence] = None

    def find(self, occurrence: UUID, attempt: int) -> Sent | None:
        """What is known of the claim's message."""
        sent = self._sent.get(occurrence)
        return sent if sent is not None and sent.attempt == attempt else None

    def forget(self, occurrence: UUID) -> None:
        self._sent.pop(occurrence, None)

    def lost_since(self, life: str, last_seq: int) -> list[UUID]:
        """Claims whose message cannot be there: it was in another life of the stream, or behind
        what is now its end. They are forgotten, and the end is where counting goes on."""
        lost = [
            occurrence
            for occurrence, sent in self._sent.items()
            if sent.place.life != life or sent.place.seq > last_seq
        ]
        for occurrence in lost:
            del self._sent[occurrence]
        self.highest = {life: last_seq}
        return lost

    def expire(self, now: float) -> None:
        """Forgets what nobody asked for in its time."""
        while self._order and (self._order[0][0] < now or len(self._sent) > MOST):
            _, occurrence = self._order.popleft()
            sent = self._sent.get(occurrence)
            if sent is not None and (sent.expires < now or len(self._sent) > MOST):
                del self._sent[occurrence]
        for occurrence in list(self._longer):
            sent = self._sent.get(occurrence)
            if sent is None or sent.expires < now:
                del self._longer[occurrence]
                self._sent.pop(occurrence, None)
