"""A schedule in a few words: `cron 0 2 * * * in America/New_York`."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def schedule_words(schedule: Mapping[str, Any]) -> str:
    """The words for a schedule's JSON form; what refines it follows in brackets."""
    kind = schedule.get("kind")
    match kind:
        case "cron":
            words = f"cron {schedule['expression']} in {schedule['zone']}"
        case "every":
            words = f"every {float(schedule['seconds']):g} s"
        case "once":
            words = f"once at {_moment(datetime.fromisoformat(schedule['at']))}"
            words += f" in {schedule['zone']}" if schedule.get("zone") else ""
        case "calendar":
            words = f"{schedule['rrule']} in {schedule['zone']}"
        case "union":
            words = " | ".join(schedule_words(member) for member in schedule["schedules"])
        case _:
            words = str(kind)
    bounds = [
        f"{name} {_value(schedule[name])}"
        for name in ("gap", "fold", "start", "end", "limit", "jitter", "exclude")
        if schedule.get(name)
    ]
    return f"{words} ({', '.join(bounds)})" if bounds else words


def _moment(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
