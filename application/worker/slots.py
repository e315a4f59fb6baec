"""Who may run now: slots for coroutines, threads, processes and transactions, each handler's and
queue's own."""

from typing import Literal

from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.settings import WorkerSettings

_Kind = Literal["coroutine", "thread", "process"]


class Slots:
    """A run takes its slots before it is attempted and gives them back when its handler has ended.

    So nothing waits for a slot that the log already calls running, and a timeout counts work only.
    """

    def __init__(self, settings: WorkerSettings, handlers: dict[str, AnyHandler]) -> None:
        self._coroutines = settings.concurrency
        self._threads = settings.threads
        self._processes = settings.processes
        self._transactions = settings.transactions
        self._own = {name: h.concurrency for name, h in handlers.items() if h.concurrency}
        self._queues = dict(settings.queue_limits)
        self._kinds: set[_Kind] = {_kind(handler) for handler in handlers.values()}

    @property
    def free(self) -> int:
        """How many more runs could begin, were they of the kinds that have a slot."""
        return sum(self._left(kind) for kind in self._kinds)

    def left(self, queue: str) -> int | None:
        """How many more runs of the queue may begin by its own limit; ``None`` where it has
        none."""
        return self._queues.get(queue)

    def are_plain(self, handler: AnyHandler, queue: str) -> bool:
        """Whether a run needs no more than one of the worker's own slots."""
        return not handler.is_limited and queue not in self._queues

    def take(self, handler: AnyHandler, queue: str) -> bool:
        """Takes the slots of one run of ``handler`` from ``queue``; ``False`` where one of them is
        not free."""
        if self._queues.get(queue, 1) <= 0:
            return False
        if self._left(_kind(handler)) <= 0:
            return False
        if handler.transactional and self._transactions <= 0:
            return False
        if handler.concurrency is not None:
            if self._own[handler.name] <= 0:
                return False
            self._own[handler.name] -= 1
        if queue in self._queues:
            self._queues[queue] -= 1
        if handler.transactional:
            self._transactions -= 1
        self._move(handler, -1)
        return True

    def release(self, handler: AnyHandler, queue: str) -> None:
        """Gives back what ``take`` took."""
        if queue in self._queues:
            self._queues[queue] += 1
        if handler.concurrency is not None:
            self._own[handler.name] += 1
        if handler.transactional:
            self._transactions += 1
        self._move(handler, 1)

    def _left(self, kind: _Kind) -> int:
        if kind == "coroutine":
            return self._coroutines
        return self._threads if kind == "thread" else self._processes

    def _move(self, handler: AnyHandler, by: int) -> None:
        if handler.is_async:
            self._coroutines += by
        elif handler.process:
            self._processes += by
        else:
            self._threads += by


def _kind(handler: AnyHandler) -> _Kind:
    if handler.is_async:
        return "coroutine"
    return "process" if handler.process else "thread"
