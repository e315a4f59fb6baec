"""The text of a cron expression, read strictly before anything is computed from it.

crontab(5) fields, or six with the seconds first. What other readers take by accident (a reversed
range, a step that no field is long enough for, a second reading of six fields) is refused here with
the field's name, its text, and what would be right.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from horolog.domain.errors import InvalidSchedule

LONGEST_EXPRESSION = 256
"""Characters. Bounds the work of reading one; the longest useful ones are under 100."""

MONTHS = {name: number for number, name in enumerate(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
)}  # fmt: skip
WEEKDAYS = {
    name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])
}

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class FieldKind(NamedTuple):
    """A field's name in messages, its least and greatest value, the names it knows, and the
    greatest value that ``H`` draws: a day that each month has, a weekday that is not counted twice.
    """

    name: str
    least: int
    greatest: int
    names: dict[str, int]
    greatest_drawn: int


SECOND = FieldKind("second", 0, 59, {}, 59)
MINUTE = FieldKind("minute", 0, 59, {}, 59)
HOUR = FieldKind("hour", 0, 23, {}, 23)
DAY = FieldKind("day of month", 1, 31, {}, 28)
MONTH = FieldKind("month", 1, 12, MONTHS, 12)
WEEKDAY = FieldKind("day of week", 0, 7, WEEKDAYS, 6)
KINDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)

_ITEM = re.compile(
    r"(?:(?P<star>[*?])|(?P<low>[0-9]{1,4}|[a-z]{3})(?:-(?P<high>[0-9]{1,4}|[a-z]{3}))?)"
    r"(?:/(?P<step>[0-9]{1,4}))?"
)
_HASHED = re.compile(
    r"h(?:\((?P<low>[0-9]{1,4})-(?P<high>[0-9]{1,4})\))?(?:/(?P<step>[0-9]{1,4}))?"
)


class Span(NamedTuple):
    """Every ``step``-th value of low..high, both included."""

    low: int
    high: int
    step: int


class Field(NamedTuple):
    """One field as written: plain spans, and items that only day fields know (``LW``, ``2#1``)."""

    kind: FieldKind
    text: str
    spans: tuple[Span, ...]
    special: tuple[str, ...]

    @property
    def starred(self) -> bool:
        """crontab(5) judges by the first character: ``*/2`` is a star, ``1-31`` is not."""
        return self.text[0] in "*?"

    @property
    def unrestricted(self) -> bool:
        """The whole field is a star."""
        return self.text in {"*", "?"}

    @property
    def hashed(self) -> bool:
        """Some value of it depends on the hash key."""
        return "h" in re.split(r"[,/(]", self.text.lower())


def refuse(kind: FieldKind, text: str, why: str) -> InvalidSchedule:
    """The error for a field: names it, shows it, says what would be right."""
    return InvalidSchedule(f"cron expression, {kind.name} field {text[:64]!r}: {why}")


def read_fields(expression: str, hash_key: str) -> tuple[Field, ...]:
    """The six fields, seconds first (``0`` where the expression has five)."""
    if len(expression) > LONGEST_EXPRESSION:
        raise InvalidSchedule(
            f"cron expression: {len(expression)} characters; at most {LONGEST_EXPRESSION} are read"
        )
    words = _resolved(expression.strip()).split()
    if len(words) not in {5, 6}:
        raise InvalidSchedule(
            f"cron expression {expression[:64]!r} has {len(words)} fields; write five (minute, "
            "hour, day of month, month, day of week) or six, with the seconds first"
        )
    texts = words if len(words) == 6 else ["0", *words]
    return tuple(_read_field(kind, text, hash_key) for kind, text in zip(KINDS, texts, strict=True))


def _resolved(expression: str) -> str:
    if not expression.startswith("@"):
        return expression
    if expression.lower() not in ALIASES:
        known = ", ".join(ALIASES)
        raise InvalidSchedule(
            f"cron expression {expression[:64]!r} is not an alias; known are {known} "
            "(for a fixed interval use Every, for a single run Once)"
        )
    return ALIASES[expression.lower()]


def _read_field(kind: FieldKind, text: str, hash_key: str) -> Field:
    spans: list[Span] = []
    special: list[str] = []
    for item in text.lower().split(","):
        if kind in (DAY, WEEKDAY) and _is_special(item):
            special.append(item)
        else:
            spans.append(_read_item(kind, text, item, hash_key))
    return Field(kind, text, tuple(spans), tuple(special))


def _is_special(item: str) -> bool:
    return "l" in item or "#" in item or bool(re.fullmatch(r"[0-9]{1,2}w", item))


def _read_item(kind: FieldKind, text: str, item: str, hash_key: str) -> Span:
    hashed = _HASHED.fullmatch(item)
    if hashed is not None:
        return _hashed_span(kind, text, hashed, hash_key)
    match = _ITEM.fullmatch(item)
    if match is None:
        raise refuse(kind, text, f"cannot read {item!r}; write {_usage(kind)}")
    step = _step(kind, text, match["step"])
    if match["star"]:
        if match["star"] == "?" and kind not in (DAY, WEEKDAY):
            raise refuse(kind, text, "'?' belongs to the day fields; write *")
        return Span(kind.least, 6 if kind is WEEKDAY else kind.greatest, step)
    low = _value(kind, text, match["low"])
    if match["high"] is not None:
        high = _value(kind, text, match["high"])
        if kind is WEEKDAY and match["high"] == "sun":
            high = 7  # fri-sun ends the week; sun-tue begins it
        return _in_order(kind, text, Span(low, high, step))
    return Span(low, kind.greatest if match["step"] else low, step)


def _in_order(kind: FieldKind, text: str, span: Span) -> Span:
    if span.low > span.high:
        right = f"{span.low}-{kind.greatest},{kind.least}-{span.high}"
        raise refuse(kind, text, f"the range {span.low}-{span.high} runs backwards; write {right}")
    return span


def _step(kind: FieldKind, text: str, step: str | None) -> int:
    number = 1 if step is None else int(step)
    if not 1 <= number <= kind.greatest:
        raise refuse(kind, text, f"a step of {number}; write one from 1 to {kind.greatest}")
    return number


def _value(kind: FieldKind, text: str, value: str) -> int:
    if value in kind.names:
        return kind.names[value]
    if not value.isdigit():
        known = f", or a name ({', '.join(kind.names)})" if kind.names else ""
        raise refuse(kind, text, f"{value!r} is not a value; write {_usage(kind)}{known}")
    number = int(value)
    if not kind.least <= number <= kind.greatest:
        raise refuse(kind, text, f"{number} is out of range; write {_usage(kind)}")
    return number


def _usage(kind: FieldKind) -> str:
    return f"a value from {kind.least} to {kind.greatest}, a range, a list, or */n"


def _hashed_span(kind: FieldKind, text: str, match: re.Match[str], hash_key: str) -> Span:
    """``H``: a value that depends on the hash key alone, so that equal schedules spread out."""
    least, greatest = kind.least, kind.greatest_drawn
    if match["low"] is not None:
        least, greatest = _value(kind, text, match["low"]), _value(kind, text, match["high"])
        _in_order(kind, text, Span(least, greatest, 1))
    draw = int.from_bytes(blake2b(f"{kind.name}\0{hash_key}".encode(), digest_size=8).digest())
    if match["step"] is None:
        value = least + draw % (greatest - least + 1)
        return Span(value, value, 1)
    step = _step(kind, text, match["step"])
    return Span(least + draw % min(step, greatest - least + 1), greatest, step)


def plain_items(field: Field) -> Iterator[str]:
    """The spans as plain numbers, the form that every cron reader agrees on."""
    for low, high, step in field.spans:
        yield f"{low}-{high}/{step}" if high > low else str(low)
