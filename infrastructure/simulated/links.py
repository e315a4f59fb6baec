"""The way from an async adapter to what it calls: at once, or through a simulated network.

The adapters in memory state what is to be done as a function. Who wires them says how it gets there
and how its answer comes back; a simulation delays it, loses it, or cuts off its answer.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Link(Protocol):
    """Does ``work`` where it is to be done and returns what it returned, or raises what it raised;
    beside that whatever the way there may raise (``StoreUnavailable``, ``QueueUnavailable``)."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


class BlockingLink(Protocol):
    """The same for callers that block."""

    def __call__(self, work: Callable[[], T]) -> T: ...


async def direct(work: Callable[[], Any]) -> Any:
    """No way at all."""
    return work()


def at_once(work: Callable[[], Any]) -> Any:
    """The same for callers that block."""
    return work()
