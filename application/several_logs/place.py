"""Which of a namespace's logs a database is, and which of them a job belongs to.

Both are fixed when the namespace is created: another number of logs would move jobs between logs,
and a job that moved would fire twice, or never.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, AppendsToLog, Fences
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import NotAllowed
from horolog.domain.ids import log_of
from horolog.domain.record import record

MAX_LOGS: Final = 256


@record
class LogPlace:
    """Log number ``log`` (from 0) of ``logs``."""

    log: int = 0
    logs: int = 1

    def queue(self, namespace: str) -> str:
        """The prefix of the log's own ready queue; no namespace has a ``-`` in its name."""
        return namespace if self.log == 0 else f"{namespace}-{self.log}"

    def __str__(self) -> str:
        return f"log {self.log} of {self.logs}"


ONLY: Final = LogPlace()
"""The place of a namespace's one log."""


def birth_of(decision: Decision) -> tuple[UUID, str | None] | None:
    """The job that the decision registers, and its concurrency key; ``None`` if it does not."""
    if decision.guard.kind != "job" or decision.guard.version != 0:
        return None
    definition = JobDefinition.model_validate_json(decision.jobs[0].definition)
    return decision.guard.id, definition.concurrency_key


def log_of_job(job_id: UUID, concurrency_key: str | None, partitions: int, logs: int) -> int:
    """The log of a job: jobs that share a concurrency key share a log, for one lane counts them."""
    identity = str(job_id) if concurrency_key is None else concurrency_key
    return log_of(identity, partitions, logs)


class BirthsOfOneLog:
    """As :class:`AppendsToLog` promises, for one log of several: no job is registered in it that
    belongs to another, whichever way the command came. Raises ``NotAllowed`` for one."""

    def __init__(self, log: AppendsToLog, place: LogPlace, partitions: int) -> None:
        self._log = log
        self._place = place
        self._partitions = partitions

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        for decision in decisions:
            born = birth_of(decision)
            if born is None:
                continue
            home = log_of_job(*born, self._partitions, self._place.logs)
            if home != self._place.log:
                raise NotAllowed(
                    f"job {born[0]} belongs to log {home} of {self._place.logs}, and this client"
                    f" has log {self._place.log} alone: name all logs, or that one"
                )
        return self._log.append(decisions, fences)
