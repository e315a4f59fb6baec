"""The JSON form of answers: times in ISO 8601 with their offset, ids as text."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel


def plain(value: object) -> Any:
    """The value as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        return {str(name): plain(item) for name, item in mapping.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    assert isinstance(value, Iterable), f"{value!r} has no JSON form"
    return [plain(item) for item in cast("Iterable[object]", value)]
