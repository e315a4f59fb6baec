"""An asyncio event loop on which time is a number: with nothing to do, it jumps to the next timer.

Every callback belongs to a :class:`Process`, found by the context that it runs in. Those of one
process run in the order in which they became ready, as asyncio promises; whose turn it is among the
processes is drawn from the seed, and so is the order of timers that are due at the same instant. A
process that is paused keeps its callbacks until it goes on, as after SIGSTOP and SIGCONT; those of
a process that has crashed never run, in the middle of whatever it did.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from random import Random
from typing import Any

MOST_AT_ONCE = 200_000
"""Callbacks at one instant: more is a loop that never lets time pass."""


class Stuck(Exception):
    """The system goes round without time passing."""


class Process:
    """Something with callbacks of its own. ``error`` is what ended it, if it ended by itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.ready: deque[Handle] = deque()
        self.fuse: list[Any] | None = None
        self.context = copy_context()
        self.context.run(_PROCESS.set, self)

    def set_fuse(self, callbacks: int, blow: Callable[[], None]) -> None:
        """``blow`` is called when the process has run so many callbacks more."""
        self.fuse = [max(1, callbacks), blow]

    def __repr__(self) -> str:
        return f"<{self.name}>"


_PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)


def current_process() -> "Process | None":
    """The process whose callback runs."""
    return _PROCESS.get()


Failed = Callable[[Process | None, BaseException], None]


class Handle:
    """A callback that waits; also asyncio's TimerHandle, as far as anybody asks."""

    __slots__ = ("_args", "_callback", "_cancelled", "_when", "context", "process")

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: Context, when: float
    ) -> None:
        self._callback = callback
        self._args = args
        self._when = when
        self._cancelled = False
        self.context = context
        self.process = context.get(_PROCESS)

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def when(self) -> float:
        return self._when

    def run(self) -> None:
        self.context.run(self._callback, *self._args)


class VirtualLoop(asyncio.AbstractEventLoop):
    """``failed`` is told of what a callback raised, and of what asyncio complains about."""

    def __init__(self, random: Random, failed: Callable[[Process | None, BaseException], None]):
        self.now = 0.0
        self.callbacks = 0
        self.given_up = ""
        """Why there is no use in going on, where somebody has found that out."""
        self._random = random
        self._failed: Failed = failed
        self.outside = Process("outside")
        self._runnable: list[Process] = []
        self._timers: list[tuple[float, float, int, Handle]] = []
        self._number = 0
        self._at_once = 0
        self._closed = False
        self._tasks: list[asyncio.Task[Any]] = []

    # What asyncio and the code on it ask for.

    def time(self) -> float:
        return self.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return self._closed

    def call_soon(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(callback, args, context or copy_context(), self.now)
        self._enqueue(handle)
        return handle

    call_soon_threadsafe = call_soon  # pyright: ignore[reportAssignmentType]

    def call_later(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Handle:
        handle = Handle(callback, args, context or copy_context(), when)
        self._number += 1
        heappush(self._timers, (when, self._random.random(), self._number, handle))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        # Those of a process that crashed stay unfinished for ever, and are closed at the end.
        self._tasks.append(task)
        if len(self._tasks) > 10_000:
            self._tasks = [task for task in self._tasks if not task.done()]
        return task

    def run_in_executor(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """A thread's work, done at once when its turn comes."""
        future = self.create_future()

        def work() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 - handed to whoever waits for it
                future.set_exception(error)

        self.call_soon(work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._failed(current_process(), error)

    async def shutdown_asyncgens(self) -> None:
        return

    # Running.

    def start(self, process: Process, main: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Runs a process's main coroutine."""
        return self.create_task(main, context=process.context)

    def pause(self, process: Process) -> None:
        process.paused = True
        if process in self._runnable:
            self._runnable.remove(process)

    def resume(self, process: Process) -> None:
        process.paused = False
        if process.ready and process.alive:
            self._runnable.append(process)

    def crash(self, process: Process) -> None:
        """Nothing of it ever runs again; not even what its code would do at the end."""
        process.alive = False
        process.ready.clear()
        if process in self._runnable:
            self._runnable.remove(process)

    def run_until(self, until: float) -> None:
        """Lets the world go on until the instant ``until``."""
        asyncio.events._set_running_loop(self)  # pyright: ignore[reportAttributeAccessIssue]
        try:
            while self._turn(until):
                if self.given_up:
                    raise Stuck(self.given_up)
        finally:
            asyncio.events._set_running_loop(None)  # pyright: ignore[reportAttributeAccessIssue]
        self.now = max(self.now, until)

    def _turn(self, until: float) -> bool:
        runnable = self._runnable
        if not runnable:
            if not self._timers or self._timers[0][0] > until:
                return False
            when, _, _, handle = heappop(self._timers)
            if when > self.now:
                self.now, self._at_once = when, 0
            if not handle.cancelled():
                self._enqueue(handle)
            return True
        self._at_once += 1
        if self._at_once > MOST_AT_ONCE:
            raise Stuck(f"{MOST_AT_ONCE} callbacks at {self.now:.3f} s: {runnable}")
        index = int(self._random.random() * len(runnable)) if len(runnable) > 1 else 0
        process = runnable[index]
        handle = process.ready.popleft()
        if not process.ready:
            runnable[index] = runnable[-1]
            runnable.pop()
        if not handle.cancelled():
            self.callbacks += 1
            try:
                handle.run()
            except Exception as error:  # noqa: BLE001 - a callback's top
                self._failed(process, error)
            if process.fuse is not None:
                process.fuse[0] -= 1
                if process.fuse[0] <= 0:
                    blow, process.fuse = process.fuse[1], None
                    blow()
        return True

    def _enqueue(self, handle: Handle) -> None:
        process = handle.process or self.outside
        if not process.alive:
            return
        process.ready.append(handle)
        if len(process.ready) == 1 and not process.paused:
            self._runnable.append(process)

    def close(self) -> None:
        """Ends all that is unfinished: what hung in a crash is unwound, unheard."""
        self._closed = True
        self._failed = _unheard
        self._timers.clear()
        asyncio.events._set_running_loop(self)  # pyright: ignore[reportAttributeAccessIssue]
        try:
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
                    _unwind(task.get_coro())
        finally:
            asyncio.events._set_running_loop(None)  # pyright: ignore[reportAttributeAccessIssue]
        self._tasks.clear()
        self._runnable.clear()


def _unheard(process: Process | None, error: BaseException) -> None:
    del process, error


def _unwind(coroutine: Any) -> None:
    """Closes a coroutine, however often it awaits something while it is being closed."""
    for _ in range(1_000):
        with contextlib.suppress(Exception):
            coroutine.close()
        if coroutine.cr_frame is None:
            return
