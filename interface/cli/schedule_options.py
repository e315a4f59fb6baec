"""The options that state a schedule: of `job register`, `job reschedule` and `schedule preview`.

Exactly one of ``--cron``, ``--every``, ``--at``, ``--in`` and ``--rrule``; the others refine it.
What they say is put into one of the schedule values, which does the checking.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from horolog.interface.cli.seconds import SECONDS

if TYPE_CHECKING:
    from horolog.domain.schedule import Schedule

F = TypeVar("F", bound=Callable[..., Any])

_OLD = "old_"
KINDS = {"cron": "--cron", "every": "--every", "at": "--at", "in_": "--in", "rrule": "--rrule"}

REFINING = {
    "gap": ("cron", "rrule"),
    "fold": ("cron", "rrule"),
    "anchor": ("every", "rrule"),
    "stars": ("cron",),
    "day_rule": ("cron",),
    "keep_local_hour": ("every",),
}
"""Options that mean something for some kinds only."""

OPTIONS = [
    click.option("--cron", metavar="E", help="Cron expression of 5 or 6 fields; needs --zone."),
    click.option("--every", type=SECONDS, metavar="S", help="An interval in seconds."),
    click.option("--at", metavar="T", help="An instant, ISO 8601; if naive, local to --zone."),
    click.option(
        "--in", "in_", type=click.FloatRange(min=0), metavar="S",
        help="An instant, in so many seconds.",
    ),
    click.option("--rrule", metavar="RULE", help="An RFC 5545 rule, FREQ=MONTHLY;…; needs --zone."),
    click.option("--zone", metavar="Z", help="The IANA zone of local times, like Europe/Berlin."),
    click.option("--anchor", metavar="T", help="Where --every or --rrule counts from."),
    click.option(
        "--gap",
        type=click.Choice(["run_after_gap", "skip", "shift_forward"]),
        help="What becomes of a local time that does not exist.  [default: run_after_gap]",
    ),
    click.option(
        "--fold",
        type=click.Choice(["first", "second", "both"]),
        help="What becomes of a local time that happens twice.  [default: first]",
    ),
    click.option(
        "--stars",
        type=click.Choice(["elapsed", "fixed"]),
        help="Whether */n in minute or hour follows elapsed time.  [default: elapsed]",
    ),
    click.option(
        "--day-rule",
        type=click.Choice(["crontab", "and", "or"]),
        help="How --cron joins its two day fields.  [default: crontab]",
    ),
    click.option(
        "--keep-local-hour", is_flag=True, default=None, help="--every of whole days in --zone."
    ),
    click.option("--start", metavar="T", help="No fire time before this."),
    click.option("--end", metavar="T", help="No fire time after this."),
    click.option("--limit", type=int, metavar="N", help="At most so many runs."),
    click.option("--jitter", type=SECONDS, metavar="S", help="Start up to so many seconds late."),
    click.option(
        "--exclude", multiple=True, metavar="T", help="A date or time not to run on; repeatable."
    ),
]  # fmt: skip


def schedule_options(function: F) -> F:
    """Adds the options; the function gets them under their names."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def old_schedule_options(function: F) -> F:
    """Adds the same options as ``--old-…``, for the other one of two schedules."""
    own = getattr(function, "__click_params__", [])
    function.__click_params__ = []  # pyright: ignore[reportFunctionMemberAccess]
    options = cast("list[click.Option]", schedule_options(function).__click_params__)  # pyright: ignore[reportFunctionMemberAccess]
    for option in options:
        option.opts = [f"--old-{name.removeprefix('--')}" for name in option.opts]
        option.name = f"{_OLD}{option.name}"
        option.help = None
    function.__click_params__ = [*own, *options]  # pyright: ignore[reportFunctionMemberAccess]
    return function


def taken_old_schedule(options: dict[str, Any]) -> "Schedule | None":
    """As :func:`taken_schedule`, of the ``--old-…`` options; ``None`` where none is given."""
    names = [name for name in options if name.startswith(_OLD)]
    old = {name.removeprefix(_OLD): options.pop(name) for name in names}
    return taken_schedule(old, required=False)


def taken_schedule(options: dict[str, Any], *, required: bool = True) -> "Schedule | None":
    """Takes the schedule's options out of ``options`` and returns what they state.

    ``None`` where none is stated and none is required. Raises a usage error for a combination that
    makes no sense, ``InvalidSchedule`` for a value that cannot be used.
    """
    names = [*KINDS, *REFINING, "zone", "start", "end", "limit", "jitter", "exclude"]
    given = {name: options.pop(name) for name in names}
    given = {name: value for name, value in given.items() if value not in (None, ())}
    kinds = [name for name in KINDS if name in given]
    if not given and not required:
        return None
    if len(kinds) != 1:
        stated = " and ".join(KINDS[name] for name in kinds) or "none"
        raise click.UsageError(
            f"a schedule is one of {', '.join(KINDS.values())}; given: {stated}", _context()
        )
    return _built(kinds[0], given)


def instant(option: str, value: str, zone: str | None = None) -> datetime:
    """An ISO 8601 instant; one without an offset is local to ``zone`` and stays without one.

    Raises ``InvalidSchedule`` where it cannot be read, or has neither offset nor zone.
    """
    from horolog.domain.errors import InvalidSchedule

    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        example = "2026-12-01T09:00:00+01:00"
        raise InvalidSchedule(f"{option} {value!r} is no ISO 8601 time such as {example}") from None
    if moment.tzinfo is None and zone is None:
        raise InvalidSchedule(
            f"{option} {value} has no offset and there is no --zone:"
            f" say {moment.isoformat()}+00:00 for UTC, or add --zone Europe/Berlin"
        )
    return moment


def aware_instant(option: str, value: str, zone: str | None = None) -> datetime:
    """As :func:`instant`, and a local time is taken to the instant that it is."""
    from horolog.domain.schedule import Once

    moment = instant(option, value, zone)
    fires = Once(moment, zone=zone).upcoming(datetime.min.replace(tzinfo=UTC), 1)
    return fires[0].at


def _built(kind: str, given: dict[str, Any]) -> "Schedule":
    from horolog.domain.schedule import Calendar, Cron, Every, Once

    zone: str | None = given.get("zone")
    window: dict[str, Any] = {
        name: aware_instant(f"--{name}", given[name], zone)
        for name in ("start", "end")
        if name in given
    }
    window |= {name: given[name] for name in ("limit", "jitter", "exclude") if name in given}
    refined = {name: given[name] for name in REFINING if name in given}
    for name in refined:
        _only_for(kind, name, REFINING[name])
    if "anchor" in refined:
        refined["anchor"] = instant("--anchor", refined["anchor"], zone)
    match kind:
        case "cron":
            return Cron(given["cron"], _required(zone, "--cron"), **refined, **window)
        case "rrule":
            return Calendar(given["rrule"], _required(zone, "--rrule"), **refined, **window)
        case "every":
            return Every(given["every"], zone=zone, **refined, **window)
        case "in_":
            return Once.in_seconds(given["in_"], datetime.now(UTC), **window)
        case _:
            return Once(instant("--at", given["at"], zone), zone=zone, **window)


def _required(zone: str | None, option: str) -> str:
    if zone is None:
        raise click.UsageError(
            f"{option} needs --zone: the clock that its local times are read from,"
            " such as Europe/Berlin or UTC",
            _context(),
        )
    return zone


def _only_for(kind: str, name: str, kinds: tuple[str, ...]) -> None:
    if kind not in kinds:
        option, owners = name.replace("_", "-"), " and ".join(KINDS[one] for one in kinds)
        raise click.UsageError(f"--{option} belongs to {owners}, not to {KINDS[kind]}", _context())


def _context() -> click.Context | None:
    return click.get_current_context(silent=True)
