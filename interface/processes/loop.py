"""The loop of a process that works for as long as it lives: a scanner, a worker.

uvloop where it is installed (the extra ``speed``), asyncio's own where it is not. Beside it:

- A garbage collector that looks less often: a batch makes some 25,000 objects that live until
  its commit and hold no cycle, and the interpreter's default (a look at every 700 new ones) went
  through them again and again, for a third of all that a run cost.
- An interpreter that changes between threads more often. When the log has answered, the thread that
  waited for it needs its turn before anything goes on; by default a busy loop may keep it waiting
  for 5 ms, several times for each append.
"""

import asyncio
import gc
import sys
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

GC_THRESHOLDS = (50_000, 20, 20)
"""New objects before a look at the young ones, and how many looks before one at the older ones."""

SWITCH_S = 0.0005
"""How long a thread may keep the interpreter while another one wants it."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``: the result of ``main``, run on a new loop."""
    with (
        _seldom_collected(),
        _often_switched(),
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        return runner.run(main)


def _loop_factory() -> Any:
    """``None`` stands for asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


@contextmanager
def _often_switched() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


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
