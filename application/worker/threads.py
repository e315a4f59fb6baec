"""Threads for ``def`` handlers: started when needed, at most so many, and daemons.

Daemons, because a handler that never returns must not keep the process from ending: its attempt is
decided without it, and its lease runs out where even that failed.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Protocol


class RunsCalls(Protocol):
    """Runs calls beside the event loop, in the order of their submission."""

    def submit(self, call: Callable[[], None]) -> None: ...

    def close(self) -> None:
        """Nothing more is submitted; waits for nothing."""
        ...


class HandlerThreads:
    """Runs calls in at most ``size`` threads. What a call raises is the call's to handle."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._started = 0

    def submit(self, call: Callable[[], None]) -> None:
        """Has ``call`` run in a thread, in the order of submission."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
            elif self._started < self._size:
                self._started += 1
                name = f"horolog-handler-{self._started}"
                Thread(target=self._work, name=name, daemon=True).start()
        self._calls.put(call)

    def close(self) -> None:
        """Ends the threads after their present calls; waits for none of them."""
        for _ in range(self._started):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call
            with self._lock:
                self._idle += 1
