"""APScheduler 3: what its exporter (apscheduler_export.py) has written, in the user's own process.

The function's reference is the handler's name. A job store holds pickles; they are never opened
here, since opening a pickle runs whatever it says.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from horolog.interface.importing.declared import Imported

FORMAT = "apscheduler.1"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FOREVER_S = 366 * 86_400.0


def read_export(text: str) -> Imported:
    """The jobs of an export. Raises ``ValueError`` for what is none."""
    document = json.loads(text)
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("horolog") != FORMAT:
        raise ValueError(
            "it was not written by the exporter: `horolog import apscheduler --exporter` prints it,"
            " and it runs beside your APScheduler"
        )
    found = Imported()
    for job in cast("list[Mapping[str, Any]]", document["jobs"]):
        _declare(found, job)
    return found


def _declare(found: Imported, job: Mapping[str, Any]) -> None:
    name = str(job.get("id"))
    if job.get("error"):
        found.refuse(name, str(job["error"]))
        return
    if job.get("paused"):
        found.refuse(name, "it is paused or over: what does not run is not declared")
        return
    schedule = _schedule(found, name, job["trigger"])
    if schedule is None:
        return
    payload = dict(cast("dict[str, Any]", job.get("kwargs") or {}))
    if job.get("args"):
        payload["args"] = job["args"]
        found.differs(
            name, "positional arguments are the payload's `args`: name them in the handler"
        )
    if job.get("executor") not in (None, "default"):
        found.differs(name, f"its executor {job['executor']!r} is a matter of your workers' queues")
    grace, most = job.get("misfire_grace_time"), job.get("max_instances") or 1
    found.differs(
        name, "a handler that raises is tried again (retry), which APScheduler does not do"
    )
    found.declare(
        name,
        {
            "key": name,
            "name": job["func"],
            "schedule": schedule,
            "payload": payload or None,
            "overlap": "skip" if most == 1 else "allow",
            "concurrency_limit": most if most > 1 else None,
            "catch_up": "all" if job.get("coalesce") is False else "latest",
            "catch_up_window": _FOREVER_S if grace is None else max(1.0, float(grace)),
            "labels": {"from": "apscheduler"},
        },
    )


def _schedule(found: Imported, name: str, trigger: Mapping[str, Any]) -> dict[str, Any] | None:
    schedule: dict[str, Any] | None
    match trigger["kind"]:
        case "CronTrigger":
            schedule = _cron(found, name, trigger)
        case "IntervalTrigger":
            schedule = {"every": trigger["seconds"], "anchor": trigger.get("start_date")}
        case "DateTrigger":
            return {"at": trigger["at"]}
        case other:
            found.refuse(
                name, f"{other} ({trigger.get('text')}) has no counterpart that is the same"
            )
            return None
    if schedule is None:
        return None
    cron = trigger["kind"] == "CronTrigger"
    schedule |= {
        "start": trigger.get("start_date") if cron else None,
        "end": trigger.get("end_date"),
    }
    if trigger.get("jitter"):
        schedule["jitter"] = trigger["jitter"]
        found.differs(
            name, "jitter delays a run, never the other way, and the same run by the same"
        )
    return {field: value for field, value in schedule.items() if value is not None}


def _cron(found: Imported, name: str, trigger: Mapping[str, Any]) -> dict[str, Any] | None:
    fields = cast("dict[str, str]", trigger["fields"])
    for field, only in (("year", "*"), ("week", "*"), ("second", "0")):
        if fields.get(field, only) != only:
            found.refuse(
                name,
                f"{field}={fields[field]}: a cron expression has no {field}s; another schedule"
                " (every, rrule) may say it",
            )
            return None
    day, weekday = fields["day"].replace("last", "L"), fields["day_of_week"]
    if any(char.isalpha() for char in day.replace("L", "")):
        found.refuse(name, f"day={fields['day']}: say it as a recurrence rule ({{rrule = …}})")
        return None
    if not day.startswith("*") and not weekday.startswith("*"):
        found.refuse(
            name,
            f"day={day} and day_of_week={weekday}: APScheduler means both at once, a cron"
            " expression either; say it as a recurrence rule ({rrule = …, zone = …})",
        )
        return None
    days = _weekdays(weekday)
    if days is None:
        found.refuse(name, f"day_of_week={weekday} cannot be read")
        return None
    expression = f"{fields['minute']} {fields['hour']} {day} {fields['month']} {days}"
    found.differs(
        name,
        "a local time that a clock change skips runs after it, one that comes twice runs once"
        " (gap=, fold=)",
    )
    return {"cron": expression, "zone": trigger.get("zone") or "UTC"}


def _weekdays(text: str) -> str | None:
    """The days by name: APScheduler counts from Monday as 0, cron from Sunday."""
    if text == "*":
        return text
    days: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = ("0-6" if span == "*" else span).partition("-")
        numbers = [_number(first), _number(last or first)]
        if None in numbers or (step and not step.isdigit()):
            return None
        low, high = cast("list[int]", numbers)
        high = 6 if step and not last and span != "*" else high
        days.update(range(low, high + 1, int(step or 1)))
    return ",".join(_DAYS[day] for day in sorted(days)) if days else None


def _number(text: str) -> int | None:
    if text in _DAYS:
        return _DAYS.index(text)
    return int(text) if text.isdigit() and int(text) < 7 else None
