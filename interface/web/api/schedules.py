"""A schedule in a body: told by what it has, as in a file of jobs, and described field by field.

The description is made from the schedules themselves, so it has every field that they take and no
other. JSON has numbers and truth values, so text is not taken for one, as Python's models would.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, BaseModel, WithJsonSchema

from horolog.domain.schedule import Calendar, Cron, Every, Once
from horolog.domain.schedule.window import MOST_EXCLUSIONS

_SECONDS: Final = "Seconds."
_TOLD: Final[Mapping[str, Any]] = {
    "cron": {"type": "string", "examples": ["0 2 * * *", "*/15 9-17 * * mon-fri"]},
    "every": {"description": _SECONDS},
    "at": {"type": "string", "examples": ["2027-03-01T08:00:00Z"]},
    "rrule": {"examples": ["FREQ=DAILY;BYHOUR=9"]},
    "zone": {"description": "IANA name.", "examples": ["America/New_York"]},
    "start": {"description": "The first instant."},
    "end": {"description": "The last instant."},
    "limit": {"description": "The number of runs."},
    "jitter": {"description": "Most seconds a run starts late."},
    "exclude": {"items": {"type": "string"}, "description": "Dates, times."},
    "holidays": {"description": "Days off, by name and version."},
    "roll": {"description": "What becomes of a fire time on a holiday."},
}
_KINDS: Final[Mapping[str, tuple[type[BaseModel], str]]] = {
    "cron": (Cron, "expression"),
    "every": (Every, "seconds"),
    "at": (Once, "at"),
    "rrule": (Calendar, "rrule"),
}


def _form(told_by: str, kind: type[BaseModel], field: str) -> dict[str, Any]:
    """The fields of a kind, the one that it is told by under its short name."""
    described = kind.model_json_schema()
    definitions = described.get("$defs", {})
    named = {told_by if name == field else name: one for name, one in _fields(described).items()}
    required = [told_by, *(name for name in described["required"] if name != field)]
    return {
        "type": "object",
        "properties": {
            name: _inlined(one, definitions) | _TOLD.get(name, {}) for name, one in named.items()
        },
        "required": required,
        "additionalProperties": False,
    }


def _fields(described: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in one.items() if key != "title"}
        for name, one in described["properties"].items()
        if name != "kind"
    }


def _inlined(described: Any, definitions: Mapping[str, Any]) -> Any:
    """Without references: the document has its own place for what is referred to."""
    if isinstance(described, list):
        return [_inlined(one, definitions) for one in cast("list[Any]", described)]
    if not isinstance(described, dict):
        return described
    table = cast("dict[str, Any]", described)
    if "$ref" in table:
        return _inlined(definitions[table["$ref"].rpartition("/")[2]], definitions)
    return {name: _inlined(one, definitions) for name, one in table.items()}


SCHEDULE: Final[dict[str, Any]] = {
    "description": "When it fires. Told by what it has: `cron`, `every`, `at` or `rrule`; or the"
    " form that answers have, with its `kind`.",
    "examples": [{"cron": "0 2 * * *", "zone": "America/New_York"}, {"every": 30}],
    "anyOf": [
        *(_form(told_by, kind, field) for told_by, (kind, field) in _KINDS.items()),
        {
            "type": "object",
            "properties": {"kind": {"enum": ["once", "every", "cron", "calendar", "union"]}},
            "required": ["kind"],
        },
    ],
}


def _as_json_has_it(value: dict[str, Any]) -> dict[str, Any]:
    excluded = value.get("exclude", [])
    if not isinstance(excluded, list) or len(cast("list[Any]", excluded)) > MOST_EXCLUSIONS:
        raise ValueError(
            f"exclude: give a list of at most {MOST_EXCLUSIONS} dates, local times or instants"
        )
    for name in ("every", "seconds", "jitter", "limit"):
        if isinstance(value.get(name), str):
            raise ValueError(f"{name}: give a number, not text")
    if not isinstance(value.get("keep_local_hour", False), bool):
        raise ValueError("keep_local_hour: give true or false")
    if isinstance(holidays := value.get("holidays"), dict):
        for name in ("dates", "weekdays_off"):
            days: object = cast("dict[str, Any]", holidays).get(name, [])
            if not isinstance(days, list) or not all(
                isinstance(day, str) for day in cast("list[Any]", days)
            ):
                raise ValueError(f"holidays.{name}: give a list, such as 2027-12-25 or sun")
    return value


ScheduleForm = Annotated[dict[str, Any], AfterValidator(_as_json_has_it), WithJsonSchema(SCHEDULE)]
"""A schedule as a body has it."""
