"""What all kinds of schedules share: a window, excluded dates, holidays, and the questions asked.

A kind says at which instants it fires (``_stated``); this module cuts that to the window. The work
between two fire times is bounded: an excluded day is left at its end, not minute by minute, and a
schedule that excludes itself for good ends.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from functools import cache, cached_property
from heapq import merge
from itertools import islice, takewhile
from typing import Annotated, Any, Self, TypedDict, cast
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
)

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.exclusion import TICK, Exclusion, Omissions, read_exclusion, without
from horolog.domain.schedule.fire_time import CALENDAR_BEGIN, CALENDAR_END, FireTime
from horolog.domain.schedule.holidays import HolidayCalendar, Roll
from horolog.domain.schedule.omission import Omission
from horolog.domain.schedule.refusal import refused
from horolog.domain.schedule.roll import RollingFires
from horolog.domain.schedule.zone_data import zone

MOST_EXCLUSIONS = 1000


class Window(TypedDict, total=False):
    """The keywords that each kind of schedule takes.

    ``start`` and ``end`` are the first and last instant at which it may fire, both included: aware
    datetimes, or local ones if the schedule has a zone. ``limit`` is the number of runs, ``jitter``
    the most seconds that a run may start late so as to spread load. ``exclude`` holds local dates,
    local times or instants; ``holidays`` a calendar, ``roll`` what becomes of a fire time on one.
    ``kind`` is the discriminator of the JSON form; nobody has to give it.
    """

    start: datetime | str | None
    end: datetime | str | None
    limit: int | None
    jitter: float
    exclude: Iterable[Exclusion | str] | Exclusion | str
    holidays: HolidayCalendar | None
    roll: Roll
    kind: str


class WindowedSchedule(BaseModel):
    """A schedule: a frozen value, equal by value, that answers when it fires."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: datetime | None = None
    end: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    jitter: Annotated[float, Field(ge=0, le=366 * 86_400, allow_inf_nan=False)] = 0.0
    exclude: Annotated[tuple[date | datetime, ...], Field(max_length=MOST_EXCLUSIONS)] = ()
    holidays: HolidayCalendar | None = None
    roll: Roll = "drop"

    def _validated(self, **fields: object) -> None:
        """Validates the fields as the base class does; refusals become ``InvalidSchedule``."""
        try:
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            raise refused(type(self).__name__, error) from None
        self._settle("start", self._as_instant("start", self.start))
        self._settle("end", self._as_instant("end", self.end))
        if self.start is not None and self.end is not None and self.end < self.start:
            raise InvalidSchedule(
                f"end {self.end.isoformat()} is before start {self.start.isoformat()}"
            )

    def _settle(self, name: str, value: object) -> None:
        """Sets a field of the still unseen value."""
        object.__setattr__(self, name, value)

    def _as_instant(self, name: str, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        within_calendar(name, value)
        if value.tzinfo is None:
            if self._zone_name() is None:
                raise InvalidSchedule(
                    f"{name}: {value.isoformat()} has no zone; add an offset such as +00:00"
                )
            value = value.replace(tzinfo=self._zone())
        return value.astimezone(UTC)

    @field_validator("exclude", mode="before")
    @classmethod
    def _exclusions(cls, value: object) -> tuple[Exclusion, ...]:
        given: list[object] = [value]
        if isinstance(value, Iterable) and not isinstance(value, str):
            given = list(islice(cast("Iterable[object]", value), MOST_EXCLUSIONS + 1))
        return tuple(sorted({read_exclusion(item) for item in given}, key=lambda i: i.isoformat()))

    @model_serializer(mode="wrap")
    def _compact(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        dumped = cast("dict[str, Any]", handler(self))
        stated, defaults = self.__dict__, _defaults(type(self))
        return {"kind": dumped["kind"]} | {
            name: value
            for name, value in dumped.items()
            if name != "kind" and stated[name] != defaults[name]
        }

    def to_json(self) -> dict[str, Any]:
        """A JSON-safe, compact form: the kind, and what differs from the defaults.

        ``schedule_from_json`` reads it back to an equal value. The defaults are part of the form.
        """
        return self.model_dump(mode="json")

    def anchored(self, now: datetime, hash_key: str | None = None) -> Self:
        """The schedule with everything fixed that a registration has to fix.

        An interval or a calendar rule without an anchor gets one from ``now``; a hashed cron
        expression without a key of its own gets ``hash_key``. Others come back as they are.
        """
        del now, hash_key
        return self

    def next_after(self, instant: datetime) -> FireTime | None:
        """The first fire time strictly later than ``instant`` (aware, any zone), or ``None``.

        Start, end, exclusions and holidays count; the limit does not, for the job counts its runs.
        """
        return next(self.fires(instant), None)

    def upcoming(self, after: datetime, n: int) -> list[FireTime]:
        """The next ``n`` fire times after ``after``.

        A limit is counted from the start if there is one, else from ``after``.
        """
        after = aware(after)
        schedule = self.anchored(after)
        if self.limit is None or self.start is None:
            return list(islice(schedule.fires(after), min(n, self.limit or n)))
        limited = islice(schedule.fires(self.start - TICK), self.limit)
        return list(islice((fire for fire in limited if fire.at > after), n))

    def between(self, start: datetime, end: datetime) -> Iterator[FireTime]:
        """Fire times later than ``start`` and not later than ``end``; the limit is not counted."""
        end = aware(end)
        for fire in self.fires(start):
            if fire.at > end:
                return
            yield fire

    def fires(self, after: datetime) -> Iterator[FireTime]:
        """All fire times later than ``after`` (aware), in order; without an end, unless it has one.

        Strictly increasing; the limit is not counted.
        """
        after = aware(after)
        if self.start is not None:
            after = max(after, self.start - TICK)
        for fire in self._observed(after):
            if self.end is not None and fire.at > self.end:
                return
            if fire.at > after:
                after = fire.at
                yield fire

    @abstractmethod
    def _stated(self, after: datetime) -> Iterator[FireTime]:
        """Fire times later than ``after``, in order, the window aside; instants may repeat."""

    def omitted(self, start: datetime, end: datetime) -> Iterator[Omission]:
        """What is stated but left out in (``start``, ``end``] of the window, in order, with why.

        What rolls off a holiday is moved, not left out.
        """
        since, until = aware(start), aware(end)
        if self.start is not None:
            since = max(since, self.start - TICK)
        if self.end is not None:
            until = min(until, self.end)
        return merge(self._skipped(since, until), self._left_out(since, until))

    def _left_out(self, after: datetime, until: datetime) -> Iterator[Omission]:
        for fire in takewhile(lambda fire: fire.at <= until, self._stated(after)):
            reason = self._omissions.reason(fire)
            if reason is not None:
                yield Omission(fire.at, fire.nominal, reason)

    def _skipped(self, after: datetime, until: datetime) -> Iterator[Omission]:
        """Stated times that a gap swallowed in (``after``, ``until``]; none for most kinds."""
        del after, until
        return iter(())

    @property
    def clock_zone(self) -> str:
        """The name of the zone whose local times are shown; ``UTC`` if the schedule has none."""
        return self._zone_name() or "UTC"

    def _zone_name(self) -> str | None:
        return cast("str | None", getattr(self, "zone", None))

    def _zone(self) -> ZoneInfo:
        return zone(self.clock_zone)

    @cached_property
    def _omissions(self) -> Omissions:
        return Omissions(self.exclude, self.holidays if self.roll == "drop" else None)

    def _observed(self, after: datetime) -> Iterator[FireTime]:
        """Fire times that are neither excluded nor on a holiday, or have rolled off one."""
        if self.holidays is not None and self.roll != "drop":
            step = 1 if self.roll == "next" else -1
            return RollingFires(self._remaining, self._zone(), self.holidays, step).after(after)
        return self._remaining(after)

    def _remaining(self, after: datetime) -> Iterator[FireTime]:
        if not self.exclude and (self.holidays is None or self.roll != "drop"):
            return self._stated(after)
        return without(self._stated, self._omissions, after)


@cache
def _defaults(kind: type[WindowedSchedule]) -> dict[str, object]:
    return {name: field.default for name, field in kind.model_fields.items()}


def within_calendar(name: str, value: datetime) -> None:
    """Refuses years whose first or last day some zone would carry out of the calendar."""
    if not 2 <= value.year <= 9998:
        raise InvalidSchedule(f"{name}: {value.isoformat()}; write a year from 2 to 9998")


def aware(instant: datetime) -> datetime:
    """The instant in UTC, kept inside of the calendar; refuses one without a zone."""
    if instant.tzinfo is None:
        raise InvalidSchedule(
            f"asked from {instant.isoformat()}, which has no zone; add an offset such as +00:00"
        )
    return min(max(instant, CALENDAR_BEGIN), CALENDAR_END).astimezone(UTC)
