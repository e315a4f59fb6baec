"""Traces across processes: which command led to which claim, and that to which run.

Loops and commands begin and end spans through :class:`Spans`, and hand on where they are as a W3C
``traceparent``: in events, in messages and in their headers. Where nobody traces, a span is one
object that does nothing, and no traceparent is written anywhere.

A batch is one span, linked to what led to each of its parts. A run has a span in the trace of the
command that ordered just it; the runs of a recurring job are traces of their own, linked to the
registration, for a trace that never ends can be read by nobody. Payloads, results and error texts
are never attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol
from uuid import UUID

SpanKind = Literal["internal", "producer", "consumer"]
Attribute = str | int | float | bool

MOST_LINKS: Final = 128


class Span(Protocol):
    """A span that has begun. ``traceparent`` names it for others; ``None`` where nobody traces."""

    @property
    def traceparent(self) -> str | None: ...

    def attach(self) -> Callable[[], None]:
        """Makes it the current span of this task or thread; what is returned undoes that."""
        ...

    def end(self, failure: str = "", attributes: Mapping[str, Attribute] | None = None) -> None:
        """Ends it, once; ``failure`` names the class of what went wrong."""
        ...


class Spans(Protocol):
    """Begins spans; never fails. ``tracing`` says whether anybody would see them."""

    @property
    def tracing(self) -> bool: ...

    def begin(
        self,
        name: str,
        *,
        kind: SpanKind = "internal",
        parent: str | None = None,
        links: Sequence[str] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Span:
        """A span below ``parent`` (a traceparent), or with none a trace of its own."""
        ...


class _NoSpan:
    traceparent: str | None = None

    def attach(self) -> Callable[[], None]:
        return _nothing

    def end(self, failure: str = "", attributes: Mapping[str, Attribute] | None = None) -> None: ...


def _nothing() -> None: ...


NO_SPAN: Final[Span] = _NoSpan()


class _NoSpans:
    tracing = False

    def begin(
        self,
        name: str,  # noqa: ARG002 - a port
        *,
        kind: SpanKind = "internal",  # noqa: ARG002 - a port
        parent: str | None = None,  # noqa: ARG002 - a port
        links: Sequence[str] = (),  # noqa: ARG002 - a port
        attributes: Mapping[str, Attribute] | None = None,  # noqa: ARG002 - a port
    ) -> Span:
        return NO_SPAN


UNTRACED: Final[Spans] = _NoSpans()


@dataclass(frozen=True, slots=True)
class Ordered:
    """The command that ordered a run, as a traceparent. ``alone``: it ordered nothing else."""

    traceparent: str
    alone: bool


@dataclass(frozen=True, slots=True)
class RunTrace:
    """What led to a run: its claim, and what ordered it."""

    claimed_in: str
    ordered: Ordered | None


class FindsOrders(Protocol):
    async def orders(self, runs: Mapping[UUID, tuple[UUID, str]]) -> dict[UUID, Ordered]:
        """What ordered each run, of those (by id: its job and kind) where the log says so.

        Errors: ``StoreUnavailable``.
        """
        ...


class RunTraces:
    """The traces of claims between their commit and their message; for one event loop."""

    def __init__(self) -> None:
        self._known: dict[UUID, RunTrace] = {}

    def note(self, run: UUID, trace: RunTrace) -> None:
        self._known[run] = trace

    def take(self, run: UUID) -> RunTrace | None:
        return self._known.pop(run, None) if self._known else None
