"""``Run``: what a handler is told about the attempt that it is, and what it may ask for."""

from collections.abc import Awaitable, Generator
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from horolog.application.ready import ReadyRun
from horolog.domain.errors import NotAllowed


class Lifeline(Protocol):
    """What a run reaches of its worker. Both calls block for one small statement.

    Errors: ``StoreUnavailable``.
    """

    def extend(self, run: "Run") -> None:
        """Extends the attempt's lease now, and cancels the run if the attempt was taken away."""
        ...

    def last_result(self, run: "Run") -> Any:
        """What the job's last succeeded occurrence before this one returned, or ``None``."""
        ...

    def extend_from_loop(self, run: "Run") -> Awaitable[None] | None:
        """The same as ``extend`` for callers on the event loop; ``None`` where there is no loop."""
        ...


class Run:
    """One attempt, as its handler sees it.

    ``key`` is the idempotency key: the same text for every attempt of the occurrence, another for
    every other occurrence. Hand it to the downstream that owns the effect. ``attempt`` counts from
    1, ``fire_time`` is the nominal instant (UTC). Handlers in threads may use it from their thread.
    """

    __slots__ = (
        "_connection",
        "_last_result",
        "_lifeline",
        "attempt",
        "cancelled",
        "fire_time",
        "job_id",
        "name",
        "occurrence_id",
    )

    def __init__(self, ready: ReadyRun, lifeline: Lifeline) -> None:
        self.occurrence_id: UUID = ready.occurrence
        self.job_id: UUID = ready.job
        self.attempt: int = ready.attempt
        self.fire_time: datetime = ready.fire_time
        self.name: str = ready.name
        self.cancelled: bool = False
        """Whether the handler should stop: its time is over, the worker is stopping, the job was
        cancelled, or the attempt was given to somebody else. Worth a look in every long loop."""
        self._lifeline = lifeline
        self._connection: Any = None
        self._last_result: Any = _NOT_READ

    @property
    def key(self) -> str:
        """The idempotency key."""
        return str(self.occurrence_id)

    @property
    def connection(self) -> Any:
        """The psycopg connection in whose transaction the success of this run is recorded.

        Async for ``async def`` handlers, sync for ``def`` handlers. What is written through it and
        the Succeeded event commit together or not at all; do not commit it yourself. Raises
        ``NotAllowed`` where the handler was not registered with ``transactional=True``.
        """
        if self._connection is None:
            raise NotAllowed(
                f"the handler {self.name!r} has no connection: register it with"
                " @worker.handles(…, transactional=True)"
            )
        return self._connection

    def lend(self, connection: Any) -> None:
        """For the worker: the connection of this run's transaction."""
        self._connection = connection

    @property
    def last_result(self) -> Any:
        """What the job's last succeeded occurrence before this one returned; ``None`` if nothing.

        It is read at the first use. Where the handler's own code names it, it is read before the
        handler starts, so that an ``async def`` handler does not wait for it on the event loop.
        """
        if self._last_result is _NOT_READ:
            self._last_result = self._lifeline.last_result(self)
        return self._last_result

    def heartbeat(self) -> Awaitable[None]:
        """Tells the log now that this attempt is alive; ``await`` it in ``async def`` handlers.

        The worker does so by itself for every long run. Afterwards ``cancelled`` is up to date. In
        a ``def`` handler it is done when the call returns, and there is nothing to await.
        """
        on_the_loop = self._lifeline.extend_from_loop(self)
        if on_the_loop is not None:
            return on_the_loop
        self._lifeline.extend(self)
        return _Done()

    def __repr__(self) -> str:
        return f"<Run {self.name} {self.key} attempt {self.attempt}>"


class _Done:
    """An awaitable that has nothing left to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NOT_READ: Any = object()
