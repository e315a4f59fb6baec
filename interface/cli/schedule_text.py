"""A schedule in a few words: `cron 0 2 * * * in America/New_York`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from horolog.interface.cli.rendering import text


def schedule_text(schedule: Mapping[str, Any]) -> str:
    """The words for a schedule's JSON form; what refines it follows in brackets."""
    kind = schedule.get("kind")
    match kind:
        case "cron":
            words = f"cron {schedule['expression']} in {schedule['zone']}"
        case "every":
            words = f"every {text(float(schedule['seconds']))} s"
        case "once":
            words = f"once at {text(datetime.fromisoformat(schedule['at']))}"
            words += f" in {schedule['zone']}" if schedule.get("zone") else ""
        case "calendar":
            words = f"{schedule['rrule']} in {schedule['zone']}"
        case "union":
            words = " | ".join(schedule_text(member) for member in schedule["schedules"])
        case _:
            words = str(kind)
    bounds = [
        f"{name} {text(schedule[name])}"
        for name in ("gap", "fold", "start", "end", "limit", "jitter", "exclude")
        if schedule.get(name)
    ]
    return f"{words} ({', '.join(bounds)})" if bounds else words
