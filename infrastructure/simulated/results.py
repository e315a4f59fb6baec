"""What earlier occurrences returned, from the log in memory."""

from typing import Any
from uuid import UUID

from pydantic_core import from_json

from horolog.application.privacy.ports import NoKeyring, OpensSealed
from horolog.application.privacy.results import opened_result
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedResults:
    """As :class:`horolog.application.worker.lifeline.ReadsResults` promises."""

    def __init__(self, log: SimulatedLog, keyring: OpensSealed | None = None) -> None:
        self._tables = log.tables
        self._keyring = keyring or NoKeyring()

    def last_result(self, job_id: UUID, before: UUID) -> Any:
        ids = (
            row.id
            for row in self._tables.executions.values()
            if row.job_id == job_id and row.state == "succeeded" and row.id < before
        )
        last = max(ids, default=None)
        if last is None:
            return None
        result = from_json(self._tables.streams[last][-1].state).get("result")
        return opened_result(self._keyring, last, result)
