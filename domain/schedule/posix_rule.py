"""The rule by which a zone goes on after its last listed change: the footer of a TZif file.

RFC 8536 section 3.3 takes it from POSIX (``EST5EDT,M3.2.0,M11.1.0``) and lets the hour run from
-167 to 167, which Greenland needs. The file lists changes up to some year only; without this rule
every schedule would lose its summer time from 2038 on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY_S = 86_400

_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+\-]+>)"
_CLOCK = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_RULE = re.compile(
    rf"(?P<std_name>{_NAME})(?P<std>{_CLOCK})"
    rf"(?:(?P<dst_name>{_NAME})(?P<dst>{_CLOCK})?,(?P<begin>[^,]+),(?P<end>[^,]+))?"
)


@dataclass(frozen=True)
class YearlyRule:
    """Offsets in seconds east of UTC; both changes as POSIX writes them, ``None`` without any."""

    standard_s: int
    summer_s: int
    begin: str | None
    end: str | None

    def changes(self, year: int) -> Iterator[tuple[int, int]]:
        """(instant, the offset from then on) of one year, in seconds since 1970, in order."""
        if self.begin is None or self.end is None:
            return
        yield from sorted(
            (
                (_local_second(year, self.begin) - self.standard_s, self.summer_s),
                (_local_second(year, self.end) - self.summer_s, self.standard_s),
            )
        )


def yearly_rule(footer: str) -> YearlyRule | None:
    """Reads a footer; an empty one means that the last listed offset stays for good."""
    if not footer:
        return None
    match = _RULE.fullmatch(footer)
    if match is None:
        raise ValueError(f"not a POSIX time zone rule: {footer!r}")
    standard = -_clock_s(match["std"])
    summer = standard + 3600 if match["dst"] is None else -_clock_s(match["dst"])
    return YearlyRule(standard, summer, match["begin"], match["end"])


def _clock_s(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    hours, minutes, seconds = (*parts, 0, 0)[:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _local_second(year: int, change: str) -> int:
    day, _, clock = change.partition("/")
    return (_day(year, day).toordinal() - EPOCH_DAY) * DAY_S + _clock_s(clock or "2")


def _day(year: int, text: str) -> date:
    if text.startswith("M"):
        month, week, weekday = (int(part) for part in text[1:].split("."))
        return _weekday_of_month(year, month, week, weekday)
    if text.startswith("J"):  # 1 to 365: 29 February is never counted
        return date(2023, 1, 1).replace(year=year) + timedelta(_without_leap_day(year, text))
    return date(year, 1, 1) + timedelta(int(text))


def _without_leap_day(year: int, text: str) -> int:
    number = int(text[1:])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return number if leap and number >= 60 else number - 1


def _weekday_of_month(year: int, month: int, week: int, weekday: int) -> date:
    first = date(year, month, 1)
    day = first + timedelta((weekday - first.isoweekday()) % 7 + 7 * (week - 1))
    return day if day.month == month else day - timedelta(7)
