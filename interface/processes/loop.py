"""The loop of a process that works for as long as it lives: a scanner, a worker.

uvloop where it is installed (the extra ``speed``), asyncio's own where it is not. And a garbage
collector that looks less often: a batch makes some ten thousand objects that live until its commit
and hold no cycle, and the interpreter's default (a look at every 700 new ones) went through them
again and again, for a third of all that a run cost.
"""

import asyncio
import gc
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

GC_THRESHOLDS = (10_000, 20, 20)
"""New objects before a look at the young ones, and how many looks before one at the older ones."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``: the result of ``main``, run on a new loop."""
    with _seldom_collected(), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(main)


def _loop_factory() -> Any:
    """``None`` stands for asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


@contextmanager
def _seldom_collected() -> Generator[None]:
    before = gc.get_threshold()
    gc.freeze()  # what was imported stays, and need not be looked through
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
