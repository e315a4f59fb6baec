"""What a handler returns, as the log can keep it: JSON, storable, and bounded."""

import json
from typing import Any, cast

from pydantic_core import to_jsonable_python

from horolog.domain.errors import InvalidPayload
from horolog.domain.text import is_storable, storable

MAX_RESULT_BYTES = 64 * 1024
"""The largest result, as JSON. Keep large things elsewhere, and return where they are."""

_SMALL = (bool, int, float)

_SHORT = 1_000
"""Text of so many plain characters is storable, and surely small enough."""


def storable_result(value: Any) -> Any:
    """The value as JSON values without text that Postgres cannot store.

    Models, dataclasses, datetimes, UUIDs and the like are turned into JSON as pydantic does. Raises
    ``InvalidPayload`` for what has no JSON form, and for what is larger than ``MAX_RESULT_BYTES``.
    """
    if value is None or type(value) in _SMALL:
        if type(value) is int and abs(value) > 1 << 4096:
            raise InvalidPayload("the result is too large a number to keep")
        return value
    if type(value) is str and len(value) <= _SHORT and value.isascii() and "\0" not in value:
        return value
    try:
        plain = to_jsonable_python(value, inf_nan_mode="null")
        size = len(json.dumps(plain, separators=(",", ":")))
    except Exception as error:  # a user's serializers and properties run here
        raise InvalidPayload(
            f"the handler's work is done, but its result, a {type(value).__name__}, has no JSON"
            f" form ({str(error)[:200]}): return JSON values, or None"
        ) from error
    if size > MAX_RESULT_BYTES:
        raise InvalidPayload(
            f"the handler's work is done, but its result has {size} bytes as JSON, more than"
            f" {MAX_RESULT_BYTES}: keep it elsewhere, and return where it is"
        )
    return _storable(plain)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_storable(value) else storable(value, MAX_RESULT_BYTES)
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {cast("str", _storable(key)): _storable(item) for key, item in items}
    return value
