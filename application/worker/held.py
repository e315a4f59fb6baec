"""The messages in this worker's hands, and when each of them goes back to the queue.

A message carries one run or many. It is acknowledged when the log has decided each of them, and not
before: until then it is extended, and where some of its runs cannot be taken here, offered again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol


class ReadyMessage(Protocol):
    """One delivery of a message. Nothing here waits or fails: what the queue does not hear of is
    delivered again, and the log recognises it."""

    @property
    def data(self) -> bytes: ...

    @property
    def age_s(self) -> float:
        """Seconds at least since the queue got the message (not this delivery of it), whatever
        this machine's clock shows."""
        ...

    @property
    def traceparent(self) -> str | None:
        """The span that published it, where somebody traces."""
        ...

    def tell(self, word: "Word") -> None:
        """Says to the queue what becomes of the delivery."""
        ...


class Word:
    """What is said to the queue about a delivery: done, still working, never again, or later."""

    __slots__ = ("delay_s", "kind")

    def __init__(self, kind: str, delay_s: float = 0.0) -> None:
        self.kind = kind
        self.delay_s = delay_s


DONE = Word("done")
WORKING = Word("working")
NEVER = Word("never")


def later(delay_s: float) -> Word:
    """Offer it again, to whichever worker, after so many seconds."""
    return Word("later", delay_s)


class Held:
    """A delivery with ``open`` undecided runs."""

    __slots__ = (
        "_again_after_s",
        "_disowned",
        "_ended",
        "extended_at",
        "held_since",
        "message",
        "open",
        "runs",
    )

    def __init__(self, message: ReadyMessage, runs: int, now_s: float) -> None:
        self.message = message
        self.runs = self.open = runs
        self.held_since = self.extended_at = now_s
        self._disowned = 0
        self._again_after_s: float | None = None
        self._ended: Callable[[Held], None] | None = None

    def when_ended(self, callback: "Callable[[Held], None]") -> None:
        self._ended = callback

    def settle(self) -> None:
        """One of its runs is decided in the log. The last one acknowledges the message."""
        self.open -= 1
        if self.open <= 0:
            if self._again_after_s is not None:
                self._end(later(self._again_after_s))
            else:
                self._end(NEVER if self._disowned == self.runs else DONE)

    def disown(self) -> None:
        """One of its runs is none of ours. A message of strangers is thrown away."""
        self._disowned += 1
        self.settle()

    def leave(self, delay_s: float) -> None:
        """One of its runs is for somebody else: the message is offered again in the end."""
        before = self._again_after_s
        self._again_after_s = delay_s if before is None else min(before, delay_s)
        self.settle()

    def give_back(self, delay_s: float) -> None:
        """Offers it again now; what runs of it here goes on, and is refused to whoever gets it."""
        self._end(later(delay_s))

    def _end(self, word: Word) -> None:
        if self._ended is not None:
            self.message.tell(word)
            ended, self._ended = self._ended, None
            ended(self)


class HeldMessages:
    """All deliveries in hand; those held for long are extended."""

    def __init__(self, extend_after_s: float) -> None:
        self._extend_after_s = extend_after_s
        self._held: dict[int, Held] = {}

    def hold(self, message: ReadyMessage, runs: int, now_s: float) -> Held:
        held = Held(message, runs, now_s)
        self._held[id(held)] = held
        held.when_ended(self._forget)
        return held

    def extend(self, now_s: float) -> None:
        """Tells the queue of each delivery held since ``extend_after_s`` that it is worked on."""
        for held in list(self._held.values()):
            if now_s - held.extended_at >= self._extend_after_s:
                held.extended_at = now_s
                held.message.tell(WORKING)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._held.values()))

    def _forget(self, held: Held) -> None:
        del self._held[id(held)]


Wanted = Callable[[str], int]
"""How many more messages of a queue are wanted in hand now."""


def as_many_as_there_are(queue: str) -> int:
    """Of each queue, so that the limit alone bounds what comes."""
    del queue
    return 1 << 30


class PullsReady(Protocol):
    """The ready queue as the worker takes from it."""

    async def pull(
        self, limit: int, wanted: Wanted = as_many_as_there_are
    ) -> Sequence[ReadyMessage]:
        """Waits until there is something that is wanted, and gives it at once, at most ``limit``
        messages.

        Guarantees: of a queue no more is asked for than is ``wanted`` when it is asked, so that one
        of which nothing is wanted takes no place from the others. Being cancelled while it waits
        loses none. A queue that is away is waited for. Errors: none.
        """
        ...

    def wants_more(self) -> None:
        """More is wanted of a queue than when it was last asked: a pull that waits asks again."""
        ...
