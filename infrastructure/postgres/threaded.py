"""The async face of the sync adapters: a thread of its own, in which calls run one after the other.

The adapters are written once, with blocking calls; the loops of scanner and worker are asyncio. A
:class:`DedicatedThread` runs the calls of one loop in their order, so that one slow statement never
takes a thread that another part of the process waits for. It is a daemon: a call that hangs (a
database that vanished) does not keep the process from ending.
"""

import asyncio
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeVar
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, AppendsToLog, Fences, ReadsLog, Recorded

P = ParamSpec("P")
T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class DedicatedThread:
    """Runs blocking calls in their order, in one daemon thread that starts with the first of them.

    ``at_once``: how many calls may be under way at the same time, each in a thread of its own; they
    begin in their order. A caller that is cancelled no longer waits; its call runs to its end all
    the same.
    """

    def __init__(self, name: str, *, at_once: int = 1) -> None:
        self._name = name
        self._at_once = at_once
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[Thread] = []

    async def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of ``function(*args, **kwargs)``, or what it raised."""
        if not self._threads:
            self._threads = [
                Thread(target=self._work, name=self._name, daemon=True)
                for _ in range(self._at_once)
            ]
            for thread in self._threads:
                thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, future, lambda: function(*args, **kwargs)))
        return await future

    def close(self) -> None:
        """Ends the threads after the calls that were given to them; waits for nothing."""
        for _ in range(self._at_once):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, call = job
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                _hand_over(loop, future, _fail, error)
            else:
                _hand_over(loop, future, _succeed, result)
            del job, call  # nothing of a finished call is kept alive while waiting for the next


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[Any]",
    settle: Callable[["asyncio.Future[Any]", Any], None],
    value: object,
) -> None:
    try:
        loop.call_soon_threadsafe(settle, future, value)
    except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
        return


def _succeed(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)


class ThreadedLog:
    """The log for an asyncio loop: both sides of it, in the order of the calls."""

    def __init__(self, log: "SyncLog", thread: DedicatedThread) -> None:
        self._log = log
        self._thread = thread

    async def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        """As :class:`horolog.application.log.AppendsToLog` promises."""
        return await self._thread.call(self._log.append, decisions, fences)

    async def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        return await self._thread.call(self._log.stream, stream, after=after, limit=limit)

    async def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        return await self._thread.call(self._log.log, after=after, topics=topics, limit=limit)


class _Drains(Protocol):
    def drain(self, partitions: Sequence[int]) -> int: ...


class ThreadedDraining:
    """The inbox for an asyncio loop."""

    def __init__(self, draining: _Drains, thread: DedicatedThread) -> None:
        self._draining = draining
        self._thread = thread

    async def drain(self, partitions: Sequence[int]) -> int:
        """As :class:`horolog.application.scanner.receiving.DrainsInbox` promises."""
        return await self._thread.call(self._draining.drain, partitions)


class SyncLog(AppendsToLog, ReadsLog, Protocol):
    """Both sides of a log whose calls block, as one type."""
