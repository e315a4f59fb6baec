"""Looking through many rows for few: piece by piece, each a statement of a bounded length.

One statement that runs until it has found enough would hold a snapshot for minutes where almost
nothing fits, and end in a time-out. A piece looks at so many rows of an index and says where it
ended; the next one begins there.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

R = TypeVar("R")
K = TypeVar("K")

MOST_LOOKED_AT: Final = 20_000


class Piece(NamedTuple, Generic[R, K]):
    """The rows of a piece that fit, and the key of its last row; ``None`` after the last piece."""

    found: Sequence[R]
    last: K | None


def looked_through(
    read: Callable[[K | None, int, int], Piece[R, K]],
    *,
    after: K | None,
    limit: int,
    selective: bool,
) -> list[R]:
    """The first ``limit`` rows that fit; ``read(after, look, limit)`` reads one piece.

    ``selective``: not every row fits, so a piece looks at more of them than are wanted.
    """
    found: list[R] = []
    look = min(MOST_LOOKED_AT, max(limit, 1_000)) if selective else limit
    while True:
        piece = read(after, look, limit - len(found))
        found += piece.found
        if len(found) >= limit or piece.last is None:
            return found[:limit]
        after, look = piece.last, min(MOST_LOOKED_AT, look * 4)


def all_pieces(read: Callable[[K | None, int, int], Piece[R, K]]) -> Iterator[R]:
    """All rows that fit, one piece after the other."""
    after: K | None = None
    while True:
        piece = read(after, MOST_LOOKED_AT, MOST_LOOKED_AT)
        yield from piece.found
        if piece.last is None:
            return
        after = piece.last
