"""One pass over the part of the log in which a month has events, before any of it leaves.

It finds out what has to be said when they are gone: where schedules stood, and what is left of the
links of the hash chain. The events that leave go to the archive on the way.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json

from horolog.application.retention.ports import Month, Months
from horolog.application.verify.hash_chain import Link, PrunedLink, event_bytes
from horolog.application.verify.ports import StoredEvent
from horolog.domain.ids import fire_time_floor
from horolog.domain.log_events import ScheduleMoved
from horolog.domain.occurrence_events import Claimed

PAGE: Final = 5_000


class Scan:
    """Iterate over :meth:`leaving` to its end; what was found is complete then.

    Memory grows with the jobs that fired in the month and with its appends.
    """

    def __init__(self, months: Months, month: Month) -> None:
        self.moves: dict[UUID, ScheduleMoved] = {}
        """The last claim of each job among what leaves."""
        self.links: list[PrunedLink] = []
        self.until_position = month.last
        self._months = months
        self._month = month
        self._low, self._high = fire_time_floor(month.since), fire_time_floor(month.until)
        self._kept = frozenset(month.kept)

    def leaving(self) -> Iterator[StoredEvent]:
        """The events that leave the log, in their order."""
        if not self._month.first:
            return
        links = self._links()
        part = _Part(next(links, None))
        after = self._month.first - 1
        if part.link is not None:
            # The link is hashed from its first event on, and not from the first that leaves.
            after = min(after, part.link.position_from - 1)
        for event in self._events(after):
            while part.link is not None and event.position > part.link.position_to:
                self._close(part)
                part = _Part(next(links, None))
            if event.position > self._month.last and part.begins_after(self._month.last):
                break
            if self._leaves(event):
                self._note_move(event, part)
                part.leaves = True
                yield event
            else:
                part.stay(event)
        self._close(part)

    def _close(self, part: "_Part") -> None:
        if part.link is not None and part.leaves:
            left = PrunedLink(part.link.position_to, part.left, part.stays.digest())
            self.links.append(left)

    def _events(self, after: int) -> Iterator[StoredEvent]:
        while page := self._months.page(after, PAGE):
            yield from page
            after = page[-1].position

    def _links(self) -> Iterator[Link]:
        """The links from that of the month's first event on."""
        after = self._month.first - 1
        while page := self._months.links(after, PAGE):
            yield from page
            after = page[-1].position_to

    def _leaves(self, event: StoredEvent) -> bool:
        return (
            event.topic.startswith("occurrence.")
            and self._low <= event.stream < self._high
            and event.stream not in self._kept
        )

    def _note_move(self, event: StoredEvent, part: "_Part") -> None:
        if event.topic != Claimed.topic:
            return
        stated: dict[str, Any] = from_json(event.state)
        fires = stated.get("fires")
        if fires is None:
            return
        job = UUID(stated["job_id"])
        self.moves[job] = ScheduleMoved(
            position=event.position,
            append_position=event.position if part.link is None else part.link.position_to,
            recorded_at=event.recorded_at,
            job_id=job,
            fires=fires,
            next_fire=stated.get("next_fire"),
        )


class _Part:
    """A link of the chain while its events are read; without one, what is behind the last."""

    def __init__(self, link: Link | None) -> None:
        self.link = link
        self.leaves = False
        self.left = 0
        self.stays = sha256()

    def begins_after(self, position: int) -> bool:
        return self.link is None or self.link.position_from > position

    def stay(self, event: StoredEvent) -> None:
        if self.link is not None and event.position >= self.link.position_from:
            self.stays.update(event_bytes(event))
            self.left += 1
