"""The bound that every listing has: one without it would be the query that ends the database."""

from typing import Final

from horolog.domain.errors import InvalidPolicy

MAX_LIMIT: Final = 10_000
DEFAULT_LIMIT: Final = 100


def checked_limit(limit: int, *, name: str = "limit") -> int:
    """The limit itself, or ``InvalidPolicy`` where it is no number from 1 to ``MAX_LIMIT``."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPolicy(
            f"{name}={limit!r}: give a number from 1 to {MAX_LIMIT}, and go on with after= where"
            " there is more"
        )
    return limit
