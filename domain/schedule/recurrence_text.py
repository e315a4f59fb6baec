"""The text of an RFC 5545 recurrence rule (section 3.3.10), read strictly.

Days and longer only: what recurs within a day is a matter for ``Every`` or ``Cron``. ``COUNT`` and
``UNTIL`` are taken out of the rule, since a schedule has one limit and one end, whatever its kind.
"""

import re
from datetime import UTC, date, datetime
from itertools import product
from typing import Literal, NamedTuple

from horolog.domain.errors import InvalidSchedule

LONGEST_RULE = 512
"""Characters."""
MOST_TIMES_A_DAY = 1440
GREATEST_INTERVAL = 1000
"""The most days, weeks, months or years between two periods."""

Frequency = Literal["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]
_FREQUENCIES: dict[str, Frequency] = {
    "DAILY": "DAILY",
    "WEEKLY": "WEEKLY",
    "MONTHLY": "MONTHLY",
    "YEARLY": "YEARLY",
}
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class NthWeekday(NamedTuple):
    """A weekday (Monday is 0), and which one of its kind in the period; 0 for each of them."""

    weekday: int
    nth: int


class Recurrence(NamedTuple):
    """A rule as read; empty tuples where it says nothing."""

    frequency: Frequency
    interval: int
    week_start: int
    months: tuple[int, ...]
    week_numbers: tuple[int, ...]
    year_days: tuple[int, ...]
    month_days: tuple[int, ...]
    weekdays: tuple[NthWeekday, ...]
    positions: tuple[int, ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    def times(self, anchor_s: int) -> tuple[int, ...]:
        """Seconds of the day; what the rule leaves out comes from the anchor's time of day."""
        clock = product(
            self.hours or (anchor_s // 3600,),
            self.minutes or (anchor_s // 60 % 60,),
            self.seconds or (anchor_s % 60,),
        )
        return tuple(hour * 3600 + minute * 60 + second for hour, minute, second in clock)


class Bounds(NamedTuple):
    """What a rule said about its own end: ``until`` is aware, or local, or a whole local date."""

    times: int | None
    until: datetime | date | None


def split_bounds(text: str) -> tuple[str, Bounds]:
    """The rule without ``COUNT`` and ``UNTIL``, in capitals, and what these said."""
    parts = _parts(text)
    count = parts.pop("COUNT", None)
    until = parts.pop("UNTIL", None)
    if count is not None and until is not None:
        raise _refused("COUNT", count, "COUNT and UNTIL exclude each other; keep one")
    return (
        ";".join(f"{name}={value}" for name, value in parts.items()),
        Bounds(
            None if count is None else _number("COUNT", count, range(1, 1_000_000_001)),
            None if until is None else _until(until),
        ),
    )


def read_rule(text: str) -> Recurrence:
    """Reads a rule; raises ``InvalidSchedule`` that names the part which is wrong."""
    parts = _parts(text)
    named = parts.pop("FREQ", "")
    frequency = _FREQUENCIES.get(named)
    if frequency is None:
        raise _refused(
            "FREQ", named, f"write one of {', '.join(_FREQUENCIES)}; for less use Every or Cron"
        )
    recurrence = Recurrence(
        frequency=frequency,
        interval=_number("INTERVAL", parts.pop("INTERVAL", "1"), range(1, GREATEST_INTERVAL + 1)),
        week_start=_weekday("WKST", parts.pop("WKST", "MO")),
        months=_numbers(parts, "BYMONTH", 1, 12),
        week_numbers=_signed_numbers(parts, "BYWEEKNO", 53),
        year_days=_signed_numbers(parts, "BYYEARDAY", 366),
        month_days=_signed_numbers(parts, "BYMONTHDAY", 31),
        weekdays=tuple(sorted({_nth_weekday(item) for item in _items(parts, "BYDAY")})),
        positions=_signed_numbers(parts, "BYSETPOS", 366),
        hours=_numbers(parts, "BYHOUR", 0, 23),
        minutes=_numbers(parts, "BYMINUTE", 0, 59),
        seconds=_numbers(parts, "BYSECOND", 0, 59),
    )
    if parts:
        name, value = next(iter(parts.items()))
        raise _refused(name, value, "not a part of a recurrence rule that is known here")
    _check_together(recurrence)
    return recurrence


def _parts(text: str) -> dict[str, str]:
    if len(text) > LONGEST_RULE:
        raise InvalidSchedule(f"rrule of {len(text)} characters; at most {LONGEST_RULE} are read")
    parts: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").rstrip(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or not value:
            raise _refused(name or "rrule", part, "write NAME=VALUE parts, such as FREQ=MONTHLY")
        if name in parts:
            raise _refused(name, value, "given twice")
        parts[name] = value
    return parts


def _numbers(parts: dict[str, str], name: str, least: int, most: int) -> tuple[int, ...]:
    allowed = range(least, most + 1)
    return tuple(sorted({_number(name, item, allowed) for item in _items(parts, name)}))


def _signed_numbers(parts: dict[str, str], name: str, most: int) -> tuple[int, ...]:
    """From 1 to ``most`` counted from the beginning, or from -1 down counted from the end."""
    allowed = range(1, most + 1)
    return tuple(sorted({_signed(name, item, allowed) for item in _items(parts, name)}))


def _signed(name: str, item: str, allowed: range) -> int:
    number = _number(name, item.removeprefix("-"), allowed)
    return -number if item.startswith("-") else number


def _items(parts: dict[str, str], name: str) -> list[str]:
    value = parts.pop(name, None)
    return [] if value is None else value.split(",")


def _number(name: str, text: str, allowed: range) -> int:
    digits = text.removeprefix("+")
    if not re.fullmatch(r"[0-9]{1,10}", digits) or int(digits) not in allowed:
        raise _refused(name, text, f"write a number from {allowed[0]} to {allowed[-1]}")
    return int(digits)


def _weekday(name: str, text: str) -> int:
    if text not in _WEEKDAYS:
        raise _refused(name, text, f"write one of {', '.join(_WEEKDAYS)}")
    return _WEEKDAYS.index(text)


def _nth_weekday(item: str) -> NthWeekday:
    match = re.fullmatch(r"(?:([+-]?)([0-9]{1,2}))?([A-Z]{2})", item)
    if match is None:
        raise _refused("BYDAY", item, "write weekdays such as MO, 2TU or -1FR")
    nth = 0 if match[2] is None else _number("BYDAY", match[2], range(1, 54))
    return NthWeekday(_weekday("BYDAY", match[3]), -nth if match[1] == "-" else nth)


def _until(text: str) -> datetime | date:
    for form in ("%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y%m%d"):
        try:
            read = datetime.strptime(text, form)  # noqa: DTZ007 - local unless it ends with Z
        except ValueError:
            continue
        if form.endswith("Z"):
            return read.replace(tzinfo=UTC)
        return read if "T" in form else read.date()
    raise _refused("UNTIL", text, "write 20271231, 20271231T180000 or 20271231T180000Z")


def _check_together(rule: Recurrence) -> None:
    """What section 3.3.10 forbids, and the bounds that keep an answer quick."""
    frequency = rule.frequency
    nth = any(day.nth for day in rule.weekdays)
    if nth and (frequency in {"DAILY", "WEEKLY"} or rule.week_numbers):
        raise _refused("BYDAY", "", "a numbered weekday needs FREQ=MONTHLY or YEARLY, no BYWEEKNO")
    if rule.month_days and frequency == "WEEKLY":
        raise _refused("BYMONTHDAY", "", "does not go with FREQ=WEEKLY")
    if (rule.year_days or rule.week_numbers) and frequency != "YEARLY":
        raise _refused("BYYEARDAY or BYWEEKNO", "", "goes with FREQ=YEARLY only")
    if rule.positions and not any(rule[3:8]) and not any(rule[9:]):
        raise _refused("BYSETPOS", "", "needs another BY part to pick from")
    times = len(rule.hours or (0,)) * len(rule.minutes or (0,)) * len(rule.seconds or (0,))
    if times > MOST_TIMES_A_DAY:
        raise _refused(
            "BYHOUR, BYMINUTE, BYSECOND", "", f"{times} times a day; at most {MOST_TIMES_A_DAY}"
        )


def _refused(name: str, value: str, why: str) -> InvalidSchedule:
    shown = f" {value[:64]!r}" if value else ""
    return InvalidSchedule(f"rrule, {name}{shown}: {why}")
