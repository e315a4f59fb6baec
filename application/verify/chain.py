"""The chain of one job's fire times: each link announces where the next one begins (invariant 5).

A link is a claim, or a range that a policy dropped. It must begin at the fire time that was
announced before it, and announce what the schedule has after it: so no fire time is left out, and
none is used that the schedule does not have.
"""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from horolog.application.verify.report import Place, Report
from horolog.application.verify.said import Kept, Said, said_by
from horolog.domain.ids import fire_time_floor
from horolog.projections.pruned import Pruned


class Link(NamedTuple):
    """Fire times from ``first`` to ``last``, and what follows; their ``number`` may be unknown."""

    first: datetime
    last: datetime
    number: int | None
    following: datetime | None
    fires: int
    tzdata: str
    event: Place


class Chain:
    """Where a living job's schedule stands: at ``next``, with ``fires`` fire times used up.

    ``ahead`` holds links that came before their turn: a claim is recorded before the ranges that
    were dropped on the way to it, in the same append (whose time is ``stamp``).
    """

    __slots__ = ("ahead", "fires", "job", "last", "next", "paused", "schedule", "stamp")

    def __init__(
        self, job: bytes, schedule: Kept, following: datetime | None, event: Place
    ) -> None:
        self.job = job
        self.schedule = schedule
        self.next: datetime | None = following
        self.fires: int = 0
        self.paused = False
        self.last: Place = event
        self.stamp: datetime | None = None
        self.ahead: dict[datetime, Link] = {}

    @property
    def id(self) -> UUID:
        """The id of the job, for a message."""
        return UUID(bytes=self.job)

    def join(self, link: Link, report: Report) -> None:
        """Takes a link, now or when those before it have come."""
        if self.next is not None and link.first > self.next:
            self.ahead[link.first] = link
            return
        if link.first != self.next:
            report.violate(
                5,
                f"{span(link.first, link.last)} of job {self.id} had its turn before:"
                f" {shown(self.next)} comes next",
                self.last,
                link.event,
            )
            if link.following is None or self.next is None or link.following <= self.next:
                return
        self._move(link, report)
        while self.next is not None and (later := self.ahead.pop(self.next, None)) is not None:
            self._move(later, report)

    def close(self, report: Report, pruned: Pruned) -> None:
        """What is still missing will not come: it is reported, and the chain goes on behind it.

        Unless it was pruned: then the log does not hold it any more.
        """
        while self.ahead:
            link = self.ahead.pop(min(self.ahead))
            if self.next is not None and link.first > self.next:
                if not self.is_pruned(pruned):
                    report.violate(
                        5,
                        f"{self.next.isoformat()} of job {self.id} has no occurrence, and nothing"
                        f" says why: {link.first.isoformat()} comes after it",
                        self.last,
                        link.event,
                    )
                self.next, self.fires = link.first, link.fires - (link.number or 0)
            self.join(link, report)

    def is_pruned(self, pruned: Pruned) -> bool:
        """Whether the occurrence that comes next may have left the log."""
        return self.next is not None and pruned.ended(fire_time_floor(self.next), 0)

    def _move(self, link: Link, report: Report) -> None:
        if link.number is not None and link.fires != self.fires + link.number:
            report.violate(
                5,
                f"{link.number} fire times of job {self.id} bring the count from {self.fires} to"
                f" {link.fires}",
                self.last,
                link.event,
            )
        said = said_by(self.schedule, link.tzdata)
        if said is not None:
            self._compare(link, said, report)
        self.next, self.fires, self.last = link.following, link.fires, link.event

    def _compare(self, link: Link, said: Said, report: Report) -> None:
        right = said.following(link.last, link.fires)
        if link.following != right:
            report.violate(
                5,
                f"announces {shown(link.following)} of job {self.id}, where its schedule has"
                f" {shown(right)} after {link.last.isoformat()}",
                link.event,
            )
        if link.first == link.last or link.number is None:
            return
        held = said.count(link.first, link.last)
        if held != link.number or not said.has(link.last):
            report.violate(
                5,
                f"drops {link.number} fire times of job {self.id}, where its schedule has {held} in"
                f" {span(link.first, link.last)}",
                link.event,
            )


def shown(moment: datetime | None) -> str:
    return "nothing" if moment is None else moment.isoformat()


def span(first: datetime, last: datetime) -> str:
    return first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
