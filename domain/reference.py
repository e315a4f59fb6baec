"""A reference in a payload: what may change until the run is named, and looked up when it runs.

A job registered today may fire next month. What the business is allowed to change in between (a
price, an address) would be a stale snapshot if the payload held it; ``Ref("cards/42")`` names it
instead, and the worker's resolver turns it into the thing itself at every attempt.

In JSON a reference is the object ``{"$ref": "cards/42"}`` with that one key, at any depth.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from horolog.domain.errors import InvalidPayload
from horolog.domain.text import is_storable

REF_KEY = "$ref"
MAX_REF_LENGTH = 512
MAX_DEPTH = 64
"""How deep a payload may be nested; JSON readers elsewhere have limits of their own."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The name of something that is looked up when the handler runs: ``Ref("cards/42")``.

    What stands before a ``/`` is the prefix under which the worker finds the resolver. Raises
    ``InvalidPayload`` for a name that is empty, too long, or cannot be stored.
    """

    path: str

    def __post_init__(self) -> None:
        if not self.path or len(self.path) > MAX_REF_LENGTH or not is_storable(self.path):
            raise InvalidPayload(
                f"a Ref takes 1 to {MAX_REF_LENGTH} characters without NUL, like 'cards/42';"
                f" this one is {self.path[:80]!r}"
            )

    def prefixes(self) -> Iterator[str]:
        """Where a resolver may stand, the longest prefix first: ``a/b/c``, ``a/b``, ``a``."""
        prefix = self.path
        while prefix:
            yield prefix
            prefix = prefix.rpartition("/")[0]

    def to_json(self) -> dict[str, str]:
        """What stands for it in a payload: ``{"$ref": path}``."""
        return {REF_KEY: self.path}


def payload_to_json(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload as pure JSON values, every ``Ref`` in its JSON form.

    Raises ``InvalidPayload``, naming the place, for what JSON or the log cannot hold: other types,
    keys that are no strings, NaN and infinities, NUL and lone surrogates, and too deep a nesting.
    """
    if not isinstance(payload, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPayload(
            f"a payload is a mapping of the handler's arguments; this one is {_named(payload)}"
        )
    return _json_object(payload, "payload", 0)


def has_refs(value: Any) -> bool:
    """Whether a decoded JSON value holds a reference at any depth."""
    return next(find_refs(value), None) is not None


def find_refs(value: Any) -> Iterator[Ref]:
    """The references in a decoded JSON value, in its order; one that stands twice comes twice."""
    if isinstance(value, dict):
        if (ref := _read_ref(value)) is not None:  # pyright: ignore[reportUnknownArgumentType]
            yield ref
            return
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from find_refs(item)
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from find_refs(item)


def replace_refs(value: Any, found: Mapping[Ref, Any]) -> Any:
    """The value with each reference replaced by what was ``found`` for it, or by its ``Ref``."""
    if isinstance(value, dict):
        if (ref := _read_ref(value)) is not None:  # pyright: ignore[reportUnknownArgumentType]
            return found.get(ref, ref)
        items: Any = value.items()  # pyright: ignore[reportUnknownVariableType]
        return {key: replace_refs(item, found) for key, item in items}
    if isinstance(value, list):
        return [replace_refs(item, found) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _read_ref(value: dict[Any, Any]) -> Ref | None:
    if len(value) != 1:
        return None
    path = value.get(REF_KEY)
    if not isinstance(path, str) or not 0 < len(path) <= MAX_REF_LENGTH:
        return None
    return Ref(path)


def _json_value(value: Any, place: str, depth: int) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        if not is_storable(value):
            raise InvalidPayload(f"{place} holds NUL or a lone surrogate, which cannot be stored")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidPayload(f"{place} is {value}, which JSON cannot hold")
        return value
    if isinstance(value, Ref):
        return value.to_json()
    if depth >= MAX_DEPTH:
        raise InvalidPayload(f"{place} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return _json_object(value, place, depth + 1)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        items: Any = enumerate(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return [_json_value(item, f"{place}[{number}]", depth + 1) for number, item in items]
    raise InvalidPayload(
        f"{place} is {_named(value)}; a payload takes JSON values (text, numbers, booleans, None,"
        " lists, mappings) and Ref"
    )


def _json_object(value: Mapping[Any, Any], place: str, depth: int) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str) or not is_storable(key):
            raise InvalidPayload(f"{place} has the key {key!r}; keys are text that can be stored")
        checked[key] = _json_value(item, f"{place}.{key[:80]}", depth)
    return checked


def _named(value: object) -> str:
    return f"a {type(value).__name__}"
