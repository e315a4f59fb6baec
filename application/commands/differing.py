"""Whether a job that is registered again is the same job, and where it differs if it is not.

A registration fixes what its schedule left open: the anchor of an interval, the key of a hashed
expression. A program that registers ``Every(30)`` at each start means the same job each time, so
what was fixed then is no difference.
"""

from collections.abc import Mapping
from typing import Any, cast

from horolog.domain.definition import JobDefinition

_FIXED_AT_REGISTRATION = frozenset({"anchor", "hash_key"})


def differing_fields(
    present: JobDefinition, wanted: JobDefinition, stated_schedule: Mapping[str, Any]
) -> list[str]:
    """The names of the fields in which ``wanted`` is another definition than ``present``.

    ``stated_schedule`` is the schedule's JSON form as the client gave it, before it was anchored.
    """
    return [
        field
        for field in JobDefinition.model_fields
        if getattr(present, field) != getattr(wanted, field)
        and not (field == "schedule" and _means(present.schedule, stated_schedule))
    ]


def _means(stored: object, stated: object) -> bool:
    if isinstance(stored, dict) and isinstance(stated, Mapping):
        kept = cast("dict[str, Any]", stored)
        given = cast("Mapping[str, Any]", stated)
        return all(
            (name in given and _means(value, given[name]))
            or (name not in given and name in _FIXED_AT_REGISTRATION)
            for name, value in kept.items()
        ) and not (given.keys() - kept.keys())
    if isinstance(stored, list) and isinstance(stated, list):
        both = zip(cast("list[Any]", stored), cast("list[Any]", stated), strict=False)
        return len(stored) == len(stated) and all(_means(a, b) for a, b in both)  # pyright: ignore[reportUnknownArgumentType]
    return stored == stated
