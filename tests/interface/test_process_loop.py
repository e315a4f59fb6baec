"""The loop of scanner and worker processes leaves the program that it runs in as it was."""

import asyncio
import gc
import sys

import pytest

from horolog.interface.processes.loop import GC_THRESHOLDS, SWITCH_S, run


def test_it_runs_on_uvloop_where_that_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(run(loop()), uvloop.Loop)


def test_the_interpreter_is_as_before_when_it_is_over() -> None:
    before = gc.get_threshold(), sys.getswitchinterval()

    async def during() -> tuple[tuple[int, int, int], float]:
        return gc.get_threshold(), sys.getswitchinterval()

    async def failing() -> None:
        raise LookupError

    assert run(during()) == (GC_THRESHOLDS, pytest.approx(SWITCH_S))
    with pytest.raises(LookupError):
        run(failing())
    assert (gc.get_threshold(), sys.getswitchinterval()) == before
    assert gc.get_freeze_count() == 0
