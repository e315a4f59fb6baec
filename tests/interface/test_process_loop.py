"""The loop of scanner and worker processes leaves the program that it runs in as it was."""

import asyncio
import gc

import pytest

from horolog.interface.processes.loop import GC_THRESHOLDS, run


def test_it_runs_on_uvloop_where_that_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert isinstance(run(loop()), uvloop.Loop)


def test_garbage_is_looked_for_as_before_when_it_is_over() -> None:
    before = gc.get_threshold()

    async def during() -> tuple[int, int, int]:
        return gc.get_threshold()

    async def failing() -> None:
        raise LookupError

    assert run(during()) == GC_THRESHOLDS
    with pytest.raises(LookupError):
        run(failing())
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
