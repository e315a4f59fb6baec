"""A fire time: the instant, the local time, and what a clock change did to it.

Instants are compared, stored and waited for; the local time and the note are for the people who
wrote the schedule and look at the night on which the clock changed.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from horolog.domain.schedule.clock_changes import FIRST_S, LAST_S
from horolog.domain.schedule.local_walk import Change, Landing
from horolog.domain.schedule.omission import Omission

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
CALENDAR_BEGIN: Final = EPOCH + timedelta(seconds=FIRST_S)
CALENDAR_END: Final = EPOCH + timedelta(seconds=LAST_S)
"""Questions from outside of these are asked from there; nothing fires from the end on."""
LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a local clock has no zone of its own

_NOTES: dict[Change, str] = {
    "": "",
    "after_gap": "{} does not exist; ran after the gap",
    "shifted": "{} does not exist; moved later by the length of the gap",
    "first": "{} happens twice; this is the first",
    "second": "{} happens twice; this is the second",
}


@dataclass(frozen=True, slots=True, order=True)
class FireTime:
    """An instant at which a schedule fires. Compared by ``at`` alone.

    ``at`` is in UTC, ``local`` the same instant in the schedule's zone, ``note`` empty or a
    sentence on what a clock change or a holiday did. ``moved_from`` is the local time that the
    schedule stated, without a zone, where that is not what the local clock shows at ``at``.
    """

    at: datetime
    local: datetime = field(compare=False)
    note: str = field(default="", compare=False)
    moved_from: datetime | None = field(default=None, compare=False)

    @property
    def nominal(self) -> datetime:
        """The local time that the schedule stated, without a zone."""
        return self.local.replace(tzinfo=None) if self.moved_from is None else self.moved_from


def fire_time(landing: Landing, zone: ZoneInfo) -> FireTime:
    """The fire time of a landing: instants in whole seconds."""
    at = EPOCH + timedelta(seconds=landing.at)
    local = at.astimezone(zone)
    if not landing.change:
        return FireTime(at, local)
    nominal = local_time(landing.nominal)
    note = _NOTES[landing.change].format(clock(nominal))
    moved = landing.change in {"after_gap", "shifted"}
    return FireTime(at, local, note, nominal if moved else None)


def gap_omission(gap_end: int, nominal: int) -> Omission:
    """A nominal second that no clock shows, left out at the end of its gap."""
    return Omission(EPOCH + timedelta(seconds=gap_end), local_time(nominal), "gap")


def clock(local: datetime) -> str:
    """The time of day as people write it: seconds only where there are any."""
    return local.strftime("%H:%M:%S" if local.second else "%H:%M")


def local_time(second: int) -> datetime:
    """Seconds on a local clock to a ``datetime`` without a zone."""
    return LOCAL_EPOCH + timedelta(seconds=second)


def local_second(local: datetime) -> int:
    """The whole second of a local time without a zone."""
    since = local - LOCAL_EPOCH
    return since.days * 86_400 + since.seconds


def utc_second(instant: datetime) -> int:
    """The whole UTC second, rounded down, of an aware instant."""
    since = instant - EPOCH
    return since.days * 86_400 + since.seconds
