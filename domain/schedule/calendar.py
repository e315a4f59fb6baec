"""Calendar: an RFC 5545 recurrence rule in a named zone."""

from collections.abc import Iterator
from datetime import date, datetime, time
from functools import lru_cache
from typing import Literal, Self, Unpack

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.fire_time import FireTime, fire_time, gap_omission, utc_second
from horolog.domain.schedule.local_instants import local_instants
from horolog.domain.schedule.local_walk import ClockRule, Fold, Gap, skipped, walk
from horolog.domain.schedule.omission import Omission
from horolog.domain.schedule.recurrence_days import HORIZON_YEARS, Anchor, RecurringTimes
from horolog.domain.schedule.recurrence_text import Bounds, read_rule, split_bounds
from horolog.domain.schedule.window import Window, WindowedSchedule, within_calendar
from horolog.domain.schedule.zone_data import zone as zone_named


class Calendar(WindowedSchedule):
    """Fires by a recurrence rule such as ``FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9``.

    ``FREQ`` is ``DAILY`` or longer; all BY parts of RFC 5545 section 3.3.10 are read. The anchor is
    the rule's DTSTART, a local time (an aware one is taken to ``zone``): intervals are counted
    from it, what the rule leaves out (the time of day, the weekday) is taken from it, and nothing
    fires before it. Without one, ``start`` is the anchor, else midnight of the local day that
    ``anchored`` (registration) or a question brings. ``COUNT`` becomes ``limit`` and ``UNTIL``
    becomes ``end``.

    The anchor itself fires only if the rule names it. Raises ``InvalidSchedule``, which names the
    part, for what cannot be read or is silent for a hundred years from its anchor. The other
    keywords are those of :class:`Window`.
    """

    kind: Literal["calendar"] = "calendar"
    rrule: str
    zone: str
    gap: Gap = "run_after_gap"
    fold: Fold = "first"
    anchor: datetime | None = None

    def __init__(
        self,
        rrule: str,
        zone: str,
        gap: Gap = "run_after_gap",
        fold: Fold = "first",
        *,
        anchor: datetime | str | None = None,
        **window: Unpack[Window],
    ):
        self._validated(rrule=rrule, zone=zone, gap=gap, fold=fold, anchor=anchor, **window)
        zone_named(self.zone)
        text, bounds = split_bounds(self.rrule)
        self._settle("rrule", text)
        self._settle("anchor", self._local_anchor())
        self._take_over(bounds)
        self._refuse_silence(self.anchor or datetime(2024, 1, 1))  # noqa: DTZ001 - local, a leap year

    def anchored(self, now: datetime, hash_key: str | None = None) -> Self:
        del hash_key
        if self.anchor is not None:
            return self
        anchor = self._midnight(now)
        self._refuse_silence(anchor)
        return self.model_copy(update={"anchor": anchor})

    def _stated(self, after: datetime) -> Iterator[FireTime]:
        times = recurring_times(self.rrule, self.anchor or self._midnight(after))
        zone = self._zone()
        for landing in walk(times, self.zone, utc_second(after), ClockRule(self.gap, self.fold)):
            yield fire_time(landing, zone)

    def _skipped(self, after: datetime, until: datetime) -> Iterator[Omission]:
        times = recurring_times(self.rrule, self.anchor or self._midnight(after))
        seconds = utc_second(after), utc_second(until)
        for gap_end, nominal in skipped(times, self.zone, *seconds, ClockRule(self.gap, self.fold)):
            yield gap_omission(gap_end, nominal)

    def _midnight(self, instant: datetime) -> datetime:
        return datetime.combine(instant.astimezone(self._zone()).date(), time())

    def _local_anchor(self) -> datetime | None:
        anchor = self.anchor or self.start
        if anchor is not None:
            within_calendar("anchor", anchor)
        if anchor is not None and anchor.tzinfo is not None:
            anchor = anchor.astimezone(zone_named(self.zone)).replace(tzinfo=None)
        return None if anchor is None else anchor.replace(microsecond=0, fold=0)

    def _take_over(self, bounds: Bounds) -> None:
        if bounds.times is not None:
            self._settle("limit", min(bounds.times, self.limit or bounds.times))
            if self.start is None and self.anchor is not None:
                self._settle("start", local_instants(self.anchor, self._zone()).after_gap)
        if bounds.until is not None:
            until = self._as_instant("UNTIL", _last_of(bounds.until))
            ends = [end for end in (until, self.end) if end is not None]
            self._settle("end", min(ends))

    def _refuse_silence(self, anchor: datetime) -> None:
        times = recurring_times(self.rrule, anchor)
        if next(times.between(-(10**11), 10**12), None) is None:
            raise InvalidSchedule(
                f"rrule {self.rrule!r}: nothing in {HORIZON_YEARS} years from "
                f"{anchor.isoformat()}, so it never fires"
            )


@lru_cache(maxsize=2048)
def recurring_times(rrule: str, anchor: datetime) -> RecurringTimes:
    """The nominal times of a rule from a local anchor on."""
    second = anchor.hour * 3600 + anchor.minute * 60 + anchor.second
    return RecurringTimes(read_rule(rrule), Anchor(anchor.date(), second))


def _last_of(until: datetime | date) -> datetime:
    """``UNTIL`` as a date takes in that whole day."""
    if isinstance(until, datetime):
        return until
    return datetime.combine(until, time(23, 59, 59))
