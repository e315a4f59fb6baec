"""Draining the inbox: what was committed is carried out, exactly once, or set aside.

The row leaves the inbox in the transaction that appends what it says, so two who drain at once, a
crash between, and a commit whose answer was lost all end the same way: one of them has it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from pydantic import ValidationError

from horolog.application.commands.context import Context
from horolog.application.commands.registering import candidate
from horolog.application.commands.triggering import FindsTriggers
from horolog.application.decision import Decision
from horolog.application.inbox.carrying_out import as_given, carry_out
from horolog.application.inbox.given import GivenRegistration, read_given
from horolog.application.log import AppendsToLog
from horolog.domain.errors import (
    HorologError,
    NotAllowed,
    OutOfRange,
    StoreUnavailable,
    VersionConflict,
)

log = logging.getLogger("horolog.inbox")

PAGE = 500
"""How many rows are read, and of these registrations appended in one transaction, at most."""


class RowGone(Exception):
    """Somebody else has carried it out."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the inbox; ``document`` is decoded JSON."""

    id: int
    job_id: UUID
    document: object


class Taking(AppendsToLog, Protocol):
    """A log whose first append takes rows from the inbox in its transaction.

    Raises ``RowGone`` where one of them is not there any more: then nothing was appended.
    """

    @property
    def taken(self) -> bool: ...


class Inbox(Protocol):
    """What was committed there. Errors: ``StoreUnavailable``."""

    def waiting(self, partitions: Sequence[int], limit: int) -> list[Row]:
        """The first rows of these partitions that nobody has set aside, oldest first."""
        ...

    def of_job(self, job_id: UUID, limit: int) -> list[Row]:
        """Likewise, of one job."""
        ...

    def taking(self, ids: Sequence[int]) -> Taking: ...

    def settle(self, row: int, error: str | None) -> None:
        """Takes the row away, or with an error sets it aside; one that is gone is left gone."""
        ...


class Draining:
    """Carries out what the inbox holds. ``context`` is that of whoever drains."""

    def __init__(self, inbox: Inbox, requests: FindsTriggers, context: Context) -> None:
        self._inbox = inbox
        self._requests = requests
        self._context = context

    def drain(self, partitions: Sequence[int]) -> int:
        """Goes once through a page of the waiting rows; how many there were."""
        rows = self._inbox.waiting(partitions, PAGE)
        self._carry_out_all(rows)
        return len(rows)

    def settle(self, job_id: UUID) -> bool:
        """Carries out what waits of one job now; whether there was anything."""
        rows = self._inbox.of_job(job_id, PAGE)
        self._carry_out_all(rows)
        return bool(rows)

    def _carry_out_all(self, rows: Sequence[Row]) -> None:
        left = list(rows)
        while left:
            births = self._births(left)
            if len(births) > 1 and self._bear(births):
                del left[: len(births)]
            else:
                singly = max(1, len(births))
                for row in left[:singly]:
                    self._carry_out(row)
                del left[:singly]

    def _births(self, rows: Sequence[Row]) -> list[tuple[Row, Decision]]:
        """The registrations that ``rows`` begins with, each of a new job."""
        born: dict[UUID, tuple[Row, Decision]] = {}
        for row in rows:
            if row.job_id in born:
                break
            try:
                given = read_given(row.document)
                if not isinstance(given, GivenRegistration):
                    break
                born[row.job_id] = (row, self._birth(given))
            except (ValidationError, HorologError, ValueError, TypeError):
                break
        present = self._context.states.jobs(list(born)) if len(born) > 1 else {}
        births: list[tuple[Row, Decision]] = []
        for job_id, birth in born.items():
            if job_id in present:
                break
            births.append(birth)
        return births

    def _birth(self, given: GivenRegistration) -> Decision:
        return candidate(as_given(self._context, given), given.spec(), given.job_id).decision

    def _bear(self, births: Sequence[tuple[Row, Decision]]) -> bool:
        """Appends new jobs together; where one of them is refused, none."""
        taking = self._inbox.taking([row.id for row, _ in births])
        try:
            verdicts = taking.append([decision for _, decision in births]).verdicts
        except (RowGone, VersionConflict, NotAllowed, OutOfRange):
            return False
        return all(verdict == "accepted" for verdict in verdicts)

    def _carry_out(self, row: Row) -> None:
        taking = self._inbox.taking([row.id])
        context = replace(self._context, log=taking, settle=None)
        try:
            carry_out(context, self._requests, read_given(row.document))
        except RowGone:
            return
        except StoreUnavailable:
            raise
        except VersionConflict as error:
            if error.seen is not None:
                self._set_aside(row, error)
            # Else others were always faster: the next time.
        except Exception as error:  # noqa: BLE001 - whatever a row says, it stops no other row
            self._set_aside(row, error)
        else:
            if not taking.taken:  # it was so already
                self._inbox.settle(row.id, None)

    def _set_aside(self, row: Row, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}"
        log.warning("inbox row %d of job %s was set aside: %s", row.id, row.job_id, text)
        self._inbox.settle(row.id, text)
