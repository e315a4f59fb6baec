"""A share of the check: several processes read one log, and each judges what is its own.

Everything belongs to the owner of its stream: an occurrence's life, a job's chain of fire times, a
partition's terms. What several need (a job's orders, who was elected) all of them read, and only
the owner tells of it. So no share has to know what another has found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from horolog.application.verify.report import MOST_KEPT, Report, Violation

MOST_SHARES: Final = 16
"""A share is told by the last hexadecimal digit of an id."""


@dataclass(frozen=True, slots=True)
class Share:
    """The ``number``-th of ``of`` shares, from 0 on."""

    number: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        assert 0 <= self.number < self.of <= MOST_SHARES

    def owns(self, stream: bytes) -> bool:
        """Whether this share judges the stream; exactly one does."""
        return (stream[-1] & 0xF) % self.of == self.number


WHOLE: Final = Share()


def merged(reports: Sequence[Report]) -> Report:
    """The report of all shares: what was counted in sum, and each violation once, in the order of
    the log."""
    total, found, repeated = Report(), dict[Violation, None](), 0
    for report in reports:
        for each in fields(Report):
            if each.name not in ("position", "violations"):
                setattr(total, each.name, getattr(total, each.name) + getattr(report, each.name))
        total.position = max(total.position, report.position)
        for violation in report.violations:
            repeated += violation in found
            found[violation] = None
    total.violations = sorted(found, key=_place)[:MOST_KEPT]
    total.violation_count -= repeated
    return total


def _place(violation: Violation) -> tuple[bool, int]:
    """By the last of its events; what is wrong with the index comes after the log."""
    places = (event.position or 0 for event in violation.evidence)
    return violation.invariant == 6, max(places, default=0)
