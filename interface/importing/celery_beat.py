"""django-celery-beat: its tables, as `manage.py dumpdata django_celery_beat` writes them.

The task's name is the handler's, the keyword arguments are the payload. Whatever Celery does about
a task (its queue's exchange, its headers) has no counterpart and is told.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from horolog.interface.importing.declared import Imported

_SECONDS = {
    "days": 86_400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "microseconds": 1e-6,
}
_KINDS = ("crontab", "interval", "clocked", "solar")
_OWN = "celery."


def read_dump(text: str) -> Imported:
    """The periodic tasks of a dump. Raises ``ValueError`` for what is none."""
    document = json.loads(text)
    if not isinstance(document, list):
        raise ValueError("it is no list of records: python manage.py dumpdata django_celery_beat")
    tables: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for record in cast("list[object]", document):
        if not isinstance(record, dict) or "model" not in record or "fields" not in record:
            raise ValueError("a record has no model and fields: it is no dump of Django's")
        whole = cast("dict[str, Any]", record)
        model = str(whole["model"]).lower().rpartition(".")[2]
        tables.setdefault(model, {})[whole.get("pk")] = whole["fields"]
    return read_tables(tables)


def read_tables(tables: Mapping[str, Mapping[Any, Mapping[str, Any]]]) -> Imported:
    """The periodic tasks among rows by table and primary key."""
    found = Imported()
    for task in tables.get("periodictask", {}).values():
        name = str(task["name"])
        if str(task["task"]).startswith(_OWN):
            found.refuse(name, f"{task['task']} is Celery's own: Horolog needs none of it")
        elif not task.get("enabled", True):
            found.refuse(name, "it is disabled: what does not run is not declared")
        elif (schedule := _schedule(found, name, task, tables)) is not None:
            _declare(found, name, task, schedule)
    return found


def _declare(found: Imported, name: str, task: Mapping[str, Any], schedule: dict[str, Any]) -> None:
    arguments, keywords = _json(task.get("args"), []), _json(task.get("kwargs"), {})
    if not isinstance(arguments, list) or not isinstance(keywords, dict):
        found.refuse(name, "its arguments are no JSON list and object")
        return
    payload = dict(cast("dict[str, Any]", keywords))
    if arguments:
        payload["args"] = arguments
        found.differs(
            name, "positional arguments are the payload's `args`: name them in the handler"
        )
    for field in ("exchange", "routing_key", "priority"):
        if task.get(field) not in (None, ""):
            found.differs(name, f"{field}={task[field]!r} has no meaning here and is left out")
    if _json(task.get("headers"), {}):
        found.differs(name, "headers are left out: what the handler needs belongs in the payload")
    if task.get("one_off"):
        schedule["limit"] = 1
    if task.get("start_time"):
        schedule["start"] = task["start_time"]
    window = task.get("expire_seconds")
    if task.get("expires"):
        schedule["end"] = task["expires"]
        found.differs(
            name, "`expires` ends the schedule; what is due before it still runs after it"
        )
    found.declare(
        name,
        {
            "key": name,
            "name": task["task"],
            "schedule": schedule,
            "payload": payload or None,
            "queue": task.get("queue") or None,
            "catch_up_window": None if window is None else max(1.0, float(window)),
            "labels": {"from": "celery-beat"},
        },
    )


def _schedule(
    found: Imported,
    name: str,
    task: Mapping[str, Any],
    tables: Mapping[str, Mapping[Any, Mapping[str, Any]]],
) -> dict[str, Any] | None:
    kind = next((one for one in _KINDS if task.get(one) is not None), None)
    if kind is None:
        found.refuse(name, "it has no schedule")
        return None
    row = tables.get(f"{kind}schedule", {}).get(task[kind])
    if row is None:
        found.refuse(name, f"its {kind} schedule {task[kind]} is not in the dump")
        return None
    match kind:
        case "crontab":
            return _crontab(found, name, row)
        case "interval":
            seconds = float(row["every"]) * _SECONDS.get(str(row["period"]), 0.0)
            found.differs(
                name, "an interval is a grid from its anchor on; Celery counts from the last run"
            )
            return {"every": seconds}
        case "clocked":
            return {"at": row["clocked_time"]}
        case _:
            found.refuse(name, f"a solar schedule ({row.get('event')}) has no counterpart here")
            return None


def _crontab(found: Imported, name: str, row: Mapping[str, Any]) -> dict[str, Any] | None:
    columns = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    fields = [str(row.get(column, "*")).replace(" ", "") for column in columns]
    if not fields[2].startswith("*") and not fields[4].startswith("*"):
        found.refuse(
            name,
            f"day_of_month={fields[2]} and day_of_week={fields[4]}: Celery means both at once, a"
            " cron expression either; say it as a recurrence rule ({rrule = …, zone = …})",
        )
        return None
    return {"cron": " ".join(fields), "zone": str(row.get("timezone") or "UTC")}


def _json(text: object, default: object) -> object:
    if not isinstance(text, str):
        return text or default
    try:
        return json.loads(text) if text.strip() else default
    except ValueError:
        return None


def rows_by_key(
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, dict[Any, Mapping[str, Any]]]:
    """Rows as a database has them, by table and primary key, with the names of a dump."""
    return {
        table: {
            row["id"]: {name.removesuffix("_id"): value for name, value in row.items()}
            for row in found
        }
        for table, found in rows.items()
    }
