"""What users choose by: a status, a state, a label, a time; refused where nothing could match."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar, get_args

from horolog.application.commands.triggering import check_aware
from horolog.domain.errors import InvalidPolicy
from horolog.domain.job import JobStatus
from horolog.domain.occurrence import Phase
from horolog.domain.text import is_storable

T = TypeVar("T", bound=str)

# What Python and Postgres can both count with, in any zone.
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)
_LAST_PLACE = 2**62


def chosen_status(status: JobStatus | None) -> JobStatus | None:
    return chosen_from("status", status, get_args(JobStatus))


def chosen_state(state: Phase | None) -> Phase | None:
    return chosen_from("state", state, get_args(Phase))


def chosen_time(name: str, moment: datetime | None) -> datetime | None:
    """An aware time, in UTC; ``InvalidSchedule`` for one without a zone."""
    if moment is None:
        return None
    check_aware(name, moment)
    return min(max(moment, _FIRST), _LAST).astimezone(UTC)


def chosen_text(name: str, text: str | None) -> str | None:
    """A handler's or an owner's name; ``InvalidPolicy`` for what none can be."""
    if text is not None and not is_storable(text):
        raise InvalidPolicy(
            f"{name}={text!r} is no text, or holds NUL or a lone surrogate, which no {name} has"
        )
    return text


def chosen_place(after: int) -> int:
    """A position of the log or a version of a stream, from 0 on; else ``InvalidPolicy``."""
    if isinstance(after, bool) or not isinstance(after, int) or not 0 <= after <= _LAST_PLACE:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPolicy(f"after={after!r}: give the position (or version) to go on after, or 0")
    return after


def chosen_label(
    label: str | tuple[str, str] | Mapping[str, str] | None,
) -> tuple[str, str | None] | None:
    """A label's name and value, or its name alone: "region=us", ("region", "us"), "region"."""
    if label is None:
        return None
    if isinstance(label, str):
        name, equals, value = label.partition("=")
        found = (name, value if equals else None)
    else:
        pairs = list(label.items()) if isinstance(label, Mapping) else [label]
        if len(pairs) != 1 or not isinstance(pairs[0], tuple) or len(pairs[0]) != 2:  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]
            raise InvalidPolicy(f"label={label!r}: choose by one label, such as 'region=us'")
        found = pairs[0]
    if not all(is_storable(part) for part in found if part is not None):
        raise InvalidPolicy(
            f"label={label!r} is no text, or holds NUL or a lone surrogate, which no label has"
        )
    return found


def chosen_from(what: str, given: T | None, known: tuple[str, ...]) -> T | None:
    """One of the known words, or ``InvalidPolicy``, which lists them."""
    if given is not None and given not in known:
        raise InvalidPolicy(f"{what}={given!r}: there are {', '.join(known)}")
    return given
