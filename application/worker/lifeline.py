"""What a run reaches of its worker: a heartbeat at its own word, and the last result of its job."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from uuid import UUID

from horolog.application.worker.attempt import Attempt
from horolog.application.worker.heartbeats import Heartbeats
from horolog.application.worker.run import Run


class ReadsResults(Protocol):
    """What earlier occurrences returned. Errors: ``StoreUnavailable``."""

    def last_result(self, job_id: UUID, before: UUID) -> Any:
        """The result of the job's last succeeded occurrence with an id below ``before``."""
        ...


class WorkerLifeline:
    """As :class:`horolog.application.worker.run.Lifeline` promises, for the runs of one worker."""

    def __init__(
        self,
        find: Callable[[UUID, int], Attempt | None],
        heartbeats: Heartbeats,
        results: ReadsResults,
    ) -> None:
        self._find = find
        self._heartbeats = heartbeats
        self._results = results

    def extend(self, run: Run) -> None:
        attempt = self._find(run.occurrence_id, run.attempt)
        if attempt is not None and not attempt.decided:
            self._heartbeats.extend(attempt)

    def last_result(self, run: Run) -> Any:
        return self._results.last_result(run.job_id, run.occurrence_id)

    def extend_from_loop(self, run: Run) -> Awaitable[None] | None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return None
        return asyncio.to_thread(self.extend, run)
