"""What a change of schedule would change: shown before it is made."""

from dataclasses import dataclass
from datetime import datetime

from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.window import WindowedSchedule


@dataclass(frozen=True, slots=True)
class ScheduleDifference:
    """Fire times of two schedules side by side, each in order.

    ``until`` is the instant up to which both were compared, ``None`` if both end before.
    """

    kept: tuple[FireTime, ...]
    added: tuple[FireTime, ...]
    removed: tuple[FireTime, ...]
    until: datetime | None

    @property
    def unchanged(self) -> bool:
        """Both fire at the same instants, as far as they were compared."""
        return not self.added and not self.removed


def difference(
    old: WindowedSchedule, new: WindowedSchedule, after: datetime, n: int
) -> ScheduleDifference:
    """Compares the next ``n`` fire times of each after ``after`` (aware).

    A schedule that fires more often gets through ``n`` sooner; the comparison stops there, so that
    nothing seems removed only because it was not looked at.
    """
    before, behind = old.upcoming(after, n), new.upcoming(after, n)
    ends = [fires[-1].at for fires in (before, behind) if fires and len(fires) == n]
    until = min(ends, default=None)
    olds = {fire.at for fire in before}
    news = {fire.at for fire in behind}
    compared = [fire for fire in behind if until is None or fire.at <= until]
    return ScheduleDifference(
        kept=tuple(fire for fire in compared if fire.at in olds),
        added=tuple(fire for fire in compared if fire.at not in olds),
        removed=tuple(
            fire for fire in before if fire.at not in news and (until is None or fire.at <= until)
        ),
        until=until,
    )
