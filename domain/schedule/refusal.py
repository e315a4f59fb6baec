"""What pydantic refuses, said in our words and as our error."""

from pydantic import ValidationError

from horolog.domain.errors import InvalidSchedule


def refused(kind: str, error: ValidationError) -> InvalidSchedule:
    """The refusal as ``InvalidSchedule``: kind, field, reason and value."""
    return InvalidSchedule(_first_refusal(kind, error))


def _first_refusal(kind: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidSchedule):
        return str(cause)
    where = ".".join(str(part) for part in first["loc"])
    return f"{kind}, {where}: {first['msg']} (given: {str(first['input'])[:64]!r})"
