"""Blocking code in simulated time: a thread that runs only while the event loop stands still.

Commands and heartbeats call their ports and wait for the answers. Here they run in a thread of
their own, but never at the same time as anything else: whoever waits gives the turn back to the
loop, and gets it again with the answer. So their calls are delayed, cut off and overtaken like all
others, and the run stays repeatable.
"""

import contextvars
from collections import deque
from collections.abc import Callable
from threading import Lock, Thread, current_thread
from typing import Any

_pool: deque["_Carrier"] = deque()


class Ended(BaseException):
    """Unwinds a fibre whose process is gone."""


class _Carrier:
    """A thread that carries one fibre after the other."""

    def __init__(self) -> None:
        self.turn = Lock()
        self.back = Lock()
        self.turn.acquire()
        self.back.acquire()
        self.work: Callable[[], None] | None = None
        self.thread = Thread(target=self._carry, daemon=True, name="fibre")
        self.thread.start()

    def _carry(self) -> None:
        while True:
            self.turn.acquire()
            work, self.work = self.work, None
            if work is None:
                return
            work()
            del work
            self.back.release()


class Fibre:
    """``done`` is called with the result or the exception when ``function`` has ended."""

    def __init__(
        self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        self._function = function
        self._done = done
        self._answer: tuple[Any, BaseException | None] = (None, None)
        self._carrier = _pool.pop() if _pool else _Carrier()
        self._running: dict[Thread, Fibre] = {}
        self.ended = False

    def start(self) -> None:
        context = contextvars.copy_context()
        self._carrier.work = lambda: context.run(self._run)
        _FIBRES[self._carrier.thread] = self
        self._switch()

    def _run(self) -> None:
        result, error = None, None
        try:
            result = self._function()
        except Ended:
            self.ended = True
            return
        except BaseException as raised:  # noqa: BLE001 - handed on
            error = raised
        self.ended = True
        self._outcome = (result, error)

    def _switch(self) -> None:
        carrier = self._carrier
        carrier.turn.release()
        carrier.back.acquire()
        if self.ended:
            _FIBRES.pop(carrier.thread, None)
            _pool.append(carrier)
            outcome = getattr(self, "_outcome", None)
            if outcome is not None:
                self._done(*outcome)

    # Within the fibre.

    def wait(self) -> Any:
        """Gives the turn back until somebody calls :meth:`answer`."""
        carrier = self._carrier
        carrier.back.release()
        carrier.turn.acquire()
        result, error = self._answer
        if error is not None:
            raise error
        return result

    # On the loop.

    def answer(self, result: Any, error: BaseException | None = None) -> None:
        """The fibre goes on with this, until it waits again or ends."""
        if not self.ended:
            self._answer = (result, error)
            self._switch()

    def end(self) -> None:
        """It never goes on: what it holds is unwound."""
        self.answer(None, Ended())


_FIBRES: dict[Thread, Fibre] = {}


def current_fibre() -> Fibre | None:
    """The fibre that is running this code."""
    return _FIBRES.get(current_thread())
