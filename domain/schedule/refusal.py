"""What pydantic refuses, said in our words and as our error."""

from collections.abc import Generator
from contextlib import contextmanager

from pydantic import ValidationError

from horolog.domain.errors import InvalidSchedule


@contextmanager
def refusals_named(kind: str) -> Generator[None]:
    """Turns a ``ValidationError`` into ``InvalidSchedule``: kind, field, reason and value."""
    try:
        yield
    except ValidationError as error:
        raise InvalidSchedule(_first_refusal(kind, error)) from None


def _first_refusal(kind: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidSchedule):
        return str(cause)
    where = ".".join(str(part) for part in first["loc"])
    return f"{kind}, {where}: {first['msg']} (given: {str(first['input'])[:64]!r})"
