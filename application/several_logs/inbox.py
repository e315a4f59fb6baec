"""The inbox of one log of several: a client's transaction is in one database, and so its commands
can only be about jobs of that database's log."""

from collections.abc import Sequence
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.inbox.draining import Inbox, Row, Taking
from horolog.application.log import Appended, Fences
from horolog.application.several_logs.place import BirthsOfOneLog, LogPlace


class InboxOfOneLog:
    """As :class:`Inbox` promises. A registration that belongs to another log is refused (with
    ``NotAllowed``, so it is set aside), since nobody would look for the job here."""

    def __init__(self, inbox: Inbox, place: LogPlace, partitions: int) -> None:
        self._inbox = inbox
        self._place = place
        self._partitions = partitions

    def waiting(self, partitions: Sequence[int], limit: int) -> list[Row]:
        return self._inbox.waiting(partitions, limit)

    def of_job(self, job_id: UUID, limit: int) -> list[Row]:
        return self._inbox.of_job(job_id, limit)

    def settle(self, row: int, error: str | None) -> None:
        self._inbox.settle(row, error)

    def taking(self, ids: Sequence[int]) -> "TakingOfOneLog":
        return TakingOfOneLog(self._inbox.taking(ids), self._place, self._partitions)


class TakingOfOneLog:
    """As :class:`Taking` promises."""

    def __init__(self, taking: Taking, place: LogPlace, partitions: int) -> None:
        self._taking = taking
        self._log = BirthsOfOneLog(taking, place, partitions)

    @property
    def taken(self) -> bool:
        return self._taking.taken

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        return self._log.append(decisions, fences)
