"""The columns of an answer's class, for files: its fields by name, and what it computes from them.

Nested figures become columns of their own (``duration_s_p95``); what has no fixed shape (a payload,
labels) becomes JSON text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from horolog.application.answers.plain import plain

Kind = Literal["text", "integer", "number", "time", "yes or no", "json"]
_KINDS: Final[dict[object, Kind]] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "yes or no",
    datetime: "time",
}


@dataclass(frozen=True)
class Column:
    """A column; ``path`` leads from the answer to its value."""

    name: str
    kind: Kind
    path: tuple[str, ...]

    def value(self, answer: object) -> Any:
        found: Any = answer
        for name in self.path:
            found = getattr(found, name)
        if found is None or self.kind in ("integer", "number", "time", "yes or no"):
            return found
        if self.kind == "text":
            return str(found)
        return json.dumps(plain(found), ensure_ascii=False)


def columns_of(kind: type[Any], within: tuple[str, ...] = ()) -> list[Column]:
    """The columns of an answer's class: its fields, then what it computes from them."""
    hints = get_type_hints(kind)
    if (told := _TOLD.get(kind.__name__)) is not None:
        return [Column(name, form, (name,)) for name, form in told.items()]
    found: list[Column] = []
    for field in fields(kind):
        path, hint = (*within, field.name), _without_none(hints[field.name])
        if isinstance(hint, type) and is_dataclass(hint):
            found += columns_of(hint, path)
        else:
            found.append(Column("_".join(path), _kind(hint), path))
    for name, attribute in vars(kind).items():
        if isinstance(attribute, property) and attribute.fget is not None:
            hint = _without_none(get_type_hints(attribute.fget)["return"])
            found.append(Column("_".join((*within, name)), _kind(hint), (*within, name)))
    return found


# An event's own class is no value for a table; what it states is.
_TOLD: Final[Mapping[str, Mapping[str, Kind]]] = {
    "LoggedEvent": {
        "position": "integer",
        "recorded_at": "time",
        "stream": "text",
        "version": "integer",
        "topic": "text",
        "actor": "text",
        "reason": "text",
        "correlation": "text",
        "causation": "text",
        "data": "json",
    }
}


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        rest = [part for part in get_args(hint) if part is not type(None)]
        return rest[0] if len(rest) == 1 else object
    return hint


def _kind(hint: Any) -> Kind:
    if get_origin(hint) is Literal or getattr(hint, "__name__", "") == "UUID":
        return "text"
    return _KINDS.get(hint, "json")
