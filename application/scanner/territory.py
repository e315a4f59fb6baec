"""The partitions that this instance leads, under which tokens, and for how long it may trust that.

A lease buys failover, not mutual exclusion: a process that was stopped past its lease does not know
it. Two things keep its claims out. Its own trust window ends before the lease does, by a monotonic
clock counted from before the renewal was sent; and every claim states its fencing token, which the
log refuses once a newer leader was elected. The first saves work, the second is the guarantee.
"""

from collections.abc import Callable
from dataclasses import dataclass

from horolog.application.log import Fences


@dataclass(slots=True)
class Term:
    """One election won: its fencing token, and until when (monotonic) the lease surely runs."""

    partition: int
    token: int
    trusted_until: float
    published: int


Listener = Callable[[Term], None]


class Territory:
    """The terms of this instance. Who has to know of changes registers with ``gained`` and
    ``lost``; both are called in the step that found out."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.terms: dict[int, Term] = {}
        self.gained: list[Listener] = []
        self.lost: list[Listener] = []

    def gain(self, term: Term) -> None:
        """A new term, or a longer trust in the one that is known."""
        known = self.terms.get(term.partition)
        if known is not None and known.token == term.token:
            known.trusted_until = term.trusted_until
            return
        if known is not None:
            self.lose(known.partition)
        self.terms[term.partition] = term
        for listener in self.gained:
            listener(term)

    def lose(self, partition: int) -> bool:
        """Whether the partition was led until now; it is not any more."""
        term = self.terms.pop(partition, None)
        if term is None:
            return False
        for listener in self.lost:
            listener(term)
        return True

    def trusted(self, now: float) -> dict[int, int]:
        """The token of each partition whose lease surely still runs at ``now`` (monotonic)."""
        return {
            number: term.token for number, term in self.terms.items() if now < term.trusted_until
        }

    def fences(self, partitions: dict[int, int]) -> Fences:
        """What an append states, so that the log refuses what a newer leader has taken over."""
        return Fences(self.instance, partitions)
