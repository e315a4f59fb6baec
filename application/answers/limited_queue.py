"""A queue with a limit, as a client sees it."""

from dataclasses import dataclass
from typing import Any

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class LimitedQueue:
    """``limit``: how many of its runs may be claimed or run at once; ``rate``: how many may be
    claimed a second. ``taken`` slots are in use, and ``waiting`` fires wait for one."""

    queue: str
    limit: int | None
    rate: float | None
    taken: int
    waiting: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
