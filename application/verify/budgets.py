"""The budget of attempts that a job's policy allows (invariant 7).

A job's policy is read only for occurrences that failed, many jobs at once, and kept for the last
jobs asked about. Where the policy was changed meanwhile the most generous one counts: a run keeps
the policy that it was claimed with.
"""

from uuid import UUID

from horolog.application.verify.ports import ScansLog
from horolog.application.verify.report import Place, Report

MOST_KEPT = 50_000
BATCH = 1_000


class Budgets:
    """Collects what was spent, and checks it in batches."""

    def __init__(self, log: ScansLog, report: Report) -> None:
        self._log = log
        self._report = report
        self._allowed: dict[bytes, int] = {}
        self._open: list[tuple[bytes, int, bool, Place]] = []

    def spent(self, job: bytes | None, failures: int, *, again: bool, event: Place) -> None:
        """The ``failures``-th failure of a budget was recorded; ``again``: with another try."""
        if job is not None and (failures > 1 or again):
            self._open.append((job, failures, again, event))
            if len(self._open) >= BATCH:
                self.settle()

    def settle(self) -> None:
        """Checks what was collected so far."""
        unknown = {job for job, *_ in self._open} - self._allowed.keys()
        if unknown:
            if len(self._allowed) > MOST_KEPT:
                self._allowed.clear()
                unknown = {job for job, *_ in self._open}
            self._allowed |= self._log.allowed_attempts(sorted(unknown))
        for job, failures, again, event in self._open:
            allowed = self._allowed.get(job)
            if allowed is None:
                continue
            if failures > allowed or (again and failures >= allowed):
                tries = failures + again
                named = UUID(bytes=job)
                self._report.violate(
                    7, f"{tries} attempts where job {named} allows {allowed}", event
                )
        self._open.clear()
