"""A write that happens once although its answer may get lost.

If the connection breaks around the commit nobody knows whether it happened. The write is given
again: had it happened, it now meets itself, and is recognised by what it wrote. (The library
repeats too, and then reports that conflict to its caller, who believes that another was faster.)
"""

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

import psycopg

from horolog.domain.errors import StoreUnavailable

T = TypeVar("T")

_PAUSE_S = 0.2


def written_once(write: Callable[[], T], recognise: Callable[[], T | None], patience_s: float) -> T:
    """The answer of ``write``, one transaction that a unique index lets happen only once.

    ``recognise`` gives the answer of a write that the log already holds, ``None`` if it is somebody
    else's; it is asked only after a cut. Raises ``UniqueViolation`` for a conflict with others, and
    ``StoreUnavailable`` once ``patience_s`` is over: the first repetition is always made.
    """
    interrupted = False
    deadline = monotonic() + patience_s
    while True:
        try:
            return write()
        except psycopg.errors.UniqueViolation:
            found = recognise() if interrupted else None
            if found is None:
                raise
            return found
        except StoreUnavailable:
            if interrupted and monotonic() >= deadline:
                raise
            if interrupted:
                sleep(_PAUSE_S)
            interrupted = True
