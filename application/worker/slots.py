"""Who may run now: slots for coroutines, threads and transactions, each handler's and queue's
own."""

from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.settings import WorkerSettings


class Slots:
    """A run takes its slots before it is attempted and gives them back when its handler has ended.

    So nothing waits for a slot that the log already calls running, and a timeout counts work only.
    """

    def __init__(self, settings: WorkerSettings, handlers: dict[str, AnyHandler]) -> None:
        self._coroutines = settings.concurrency
        self._threads = settings.threads
        self._transactions = settings.transactions
        self._own = {name: h.concurrency for name, h in handlers.items() if h.concurrency}
        self._queues = dict(settings.queue_limits)
        kinds = {handler.is_async for handler in handlers.values()}
        self._has_async, self._has_sync = True in kinds, False in kinds

    @property
    def free(self) -> int:
        """How many more runs could begin, were they of the kinds that have a slot."""
        return (self._coroutines if self._has_async else 0) + (
            self._threads if self._has_sync else 0
        )

    def are_plain(self, handler: AnyHandler, queue: str) -> bool:
        """Whether a run needs no more than one of the worker's own slots."""
        return not handler.is_limited and queue not in self._queues

    def take(self, handler: AnyHandler, queue: str) -> bool:
        """Takes the slots of one run of ``handler`` from ``queue``; ``False`` where one of them is
        not free."""
        if self._queues.get(queue, 1) <= 0:
            return False
        if (self._coroutines if handler.is_async else self._threads) <= 0:
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
        if handler.is_async:
            self._coroutines -= 1
        else:
            self._threads -= 1
        return True

    def release(self, handler: AnyHandler, queue: str) -> None:
        """Gives back what ``take`` took."""
        if queue in self._queues:
            self._queues[queue] += 1
        if handler.concurrency is not None:
            self._own[handler.name] += 1
        if handler.transactional:
            self._transactions += 1
        if handler.is_async:
            self._coroutines += 1
        else:
            self._threads += 1
