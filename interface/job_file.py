"""A file that declares jobs: TOML, JSON, or YAML where PyYAML is installed.

    [defaults]                       # of all jobs below
    queue = "billing"

    [[jobs]]
    key = "bill-ann"
    name = "invoices.bill"
    schedule = {cron = "0 2 * * *", zone = "America/New_York"}
    payload = {customer = "ann", amount = 10}
    retry = {max_attempts = 3}

The fields are those of :class:`JobSpec`. A schedule is told by what it has: ``cron``, ``every``,
``at`` or ``rrule``, beside the fields of that kind; or it is the form that ``to_json`` gives.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime, time
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError

from horolog.application.commands.job_spec import JobSpec
from horolog.domain.errors import HorologError, InvalidPayload, InvalidPolicy, InvalidSchedule
from horolog.domain.retry import Retry
from horolog.domain.schedule import Schedule, schedule_from_json

_FIELDS: Final = frozenset(f.name for f in fields(JobSpec)) - {"replace"}
_KINDS: Final = {
    "cron": ("cron", "expression"),
    "every": ("every", "seconds"),
    "at": ("once", "at"),
    "rrule": ("calendar", "rrule"),
}
_NUMBERS: Final = ("every", "interval", "jitter", "limit")
_INSTANTS: Final = ("at", "start", "end", "anchor")
MAX_BYTES = 64 * 1024 * 1024


def read_job_file(path: Path) -> list[JobSpec]:
    """The declared jobs, in the file's order.

    Raises ``InvalidPolicy`` for a file that cannot be read or does not hold what it should,
    ``InvalidSchedule`` for a schedule; the message begins with the file and the job.
    """
    document = _document(path)
    declared: object = document
    defaults: dict[str, Any] = {}
    if isinstance(document, dict):
        table = cast("dict[str, Any]", document)
        if unknown := table.keys() - {"jobs", "defaults"}:
            raise InvalidPolicy(
                f"{path}: {sorted(unknown)[0]!r} is neither `jobs` nor `defaults`: each job is a"
                " table [[jobs]] of its own"
            )
        declared, defaults = table.get("jobs", []), table.get("defaults", {})
    if not isinstance(declared, list):
        raise InvalidPolicy(f"{path}: `jobs` is no list: write [[jobs]] before each job")
    specs: list[JobSpec] = []
    for number, entry in enumerate(cast("list[object]", declared), 1):
        try:
            specs.append(read_job(entry, defaults))
        except HorologError as error:
            where = f"{path}, job {number}"
            if isinstance(entry, dict) and "key" in entry:
                where += f" ({entry['key']})"
            raise type(error)(f"{where}: {error}") from error
    return specs


def _document(path: Path) -> object:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidPolicy(f"{path} has more than {MAX_BYTES} bytes: apply it in parts")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPolicy(f"{path} cannot be read: {error}") from None
    try:
        match path.suffix.lower():
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text)
            case ".yaml" | ".yml":
                return _yaml(path, text)
            case _:
                raise InvalidPolicy(f"{path}: a file of jobs ends with .toml, .json or .yaml")
    except (ValueError, RecursionError) as error:
        if isinstance(error, HorologError):
            raise
        raise InvalidPolicy(f"{path} cannot be read: {error}") from None


def _yaml(path: Path, text: str) -> object:
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise InvalidPolicy(
            f"{path}: reading YAML needs PyYAML (pip install pyyaml); TOML and JSON need nothing"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidPolicy(f"{path} cannot be read: {error}") from None


def read_job(entry: object, defaults: Mapping[str, Any] | None = None) -> JobSpec:
    """One declared job; raises as :func:`read_job_file` does."""
    if not isinstance(entry, dict):
        raise InvalidPolicy(f"{entry!r} is no table of a job's fields")
    stated = {**(defaults or {}), **cast("dict[str, Any]", entry)}
    for name in stated:
        if name not in _FIELDS:
            near = get_close_matches(str(name), sorted(_FIELDS), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(_FIELDS))}"
            raise InvalidPolicy(f"a job has no field {name!r}: {hint}")
    for name in ("name", "schedule"):
        if name not in stated:
            raise InvalidPolicy(f"it has no {name}")
    if not isinstance(stated["name"], str):
        raise InvalidPolicy(f"name={stated['name']!r}: a handler's name is text")
    stated["schedule"] = read_schedule(stated["schedule"])
    if "retry" in stated:
        stated["retry"] = _retry(stated["retry"])
    if "payload" in stated:
        if not isinstance(stated["payload"], dict):
            raise InvalidPayload("payload: a payload is a table of the handler's arguments")
        stated["payload"] = _plain(stated["payload"])
    return JobSpec(**stated)


def read_schedule(stated: object) -> Schedule:
    """A schedule from its table; raises ``InvalidSchedule``."""
    if not isinstance(stated, dict):
        raise InvalidSchedule(
            f"schedule={stated!r}: write a table such as"
            ' {cron = "0 2 * * *", zone = "Europe/Berlin"} or {every = 30}'
        )
    table = cast("dict[str, Any]", stated)
    for number in _NUMBERS:
        if isinstance(table.get(number), bool):  # which Python takes for 0 or 1
            raise InvalidSchedule(f"{number}={table[number]!r}: give a number")
    for instant in _INSTANTS:
        if isinstance(table.get(instant), int | float):  # which pydantic takes for seconds of 1970
            raise InvalidSchedule(
                f"{instant}={table[instant]!r}: give a time such as 2027-01-01T00:00:00+01:00"
            )
    if "kind" in table:
        return schedule_from_json(_plain(table))
    kinds = [name for name in _KINDS if name in table]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise InvalidSchedule(f"schedule: it has one of {', '.join(_KINDS)}; given: {found}")
    kind, name = _KINDS[kinds[0]]
    if name != kinds[0] and name in table:
        raise InvalidSchedule(f"schedule: {kinds[0]} and {name} are the same: give one of them")
    rest = {field: value for field, value in table.items() if field != kinds[0]}
    return schedule_from_json(_plain({"kind": kind, name: table[kinds[0]], **rest}))


def _retry(stated: object) -> Retry:
    try:
        return Retry.model_validate(stated)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in ("retry", *first["loc"]))
        raise InvalidPolicy(f"{field}={first['input']!r}: {first['msg']}") from None


def _plain(value: Any) -> Any:
    """JSON values: the dates and times of TOML and YAML as ISO 8601 text."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {str(name): _plain(item) for name, item in table.items()}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value.isoformat() if isinstance(value, datetime | date | time) else value
