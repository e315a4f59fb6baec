"""Union: several schedules as one."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Annotated, Any, Literal, Self, Unpack

from pydantic import Field

from horolog.domain.schedule.calendar import Calendar
from horolog.domain.schedule.cron import Cron
from horolog.domain.schedule.every import Every
from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.omission import Omission
from horolog.domain.schedule.once import Once
from horolog.domain.schedule.window import Window, WindowedSchedule

MOST_MEMBERS = 32
Single = Annotated[Once | Every | Cron | Calendar, Field(discriminator="kind")]
"""Any schedule but a union."""


class Union(WindowedSchedule):
    """Fires whenever one of its members does; an instant that several share is one fire time.

    One to 32 members, each with its own window; the union's window, exclusions and holidays apply
    on top. Members' limits do not count here: a job counts its runs against the union's.
    Holidays roll in the zone of the first member that has one. The keywords are those of
    :class:`Window`.
    """

    kind: Literal["union"] = "union"
    schedules: Annotated[tuple[Single, ...], Field(min_length=1, max_length=MOST_MEMBERS)]

    def __init__(
        self,
        schedules: Iterable[Once | Every | Cron | Calendar | dict[str, Any]],
        **window: Unpack[Window],
    ):
        self._validated(schedules=tuple(islice(schedules, MOST_MEMBERS + 1)), **window)

    def anchored(self, now: datetime, hash_key: str | None = None) -> Self:
        members = tuple(member.anchored(now, hash_key) for member in self.schedules)
        return self.model_copy(update={"schedules": members})

    def _zone_name(self) -> str | None:
        return next((member.zone for member in self.schedules if member.zone is not None), None)

    def _stated(self, after: datetime) -> Iterator[FireTime]:
        return merge(*(member.fires(after) for member in self.schedules))

    def _skipped(self, after: datetime, until: datetime) -> Iterator[Omission]:
        """What its members leave out, for whatever reason."""
        return merge(*(member.omitted(after, until) for member in self.schedules))
