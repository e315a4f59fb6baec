"""Handlers in processes of their own, under a real worker's loop on a log in memory."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.application.worker.conftest import Bench

from horolog.application.worker.handlers import Handlers
from horolog.application.worker.run import Run
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.handler_processes.pool import HandlerProcesses
from horolog.interface.loading import load

HERE = str(Path(__file__).parent)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Bench]:
    """A bench whose handlers run in real processes."""
    monkeypatch.setattr("sys.path", [HERE, *sys.path])
    bench = Bench()
    _, worker = load("handlers_of_tests:worker", "worker", "worker")
    assert isinstance(worker, Handlers)
    bench.handlers = worker
    bench.processes = HandlerProcesses()
    bench.patience_s = 60.0
    yield bench
    await bench.processes.close()
    sys.modules.pop("handlers_of_tests")


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def named(path: str) -> dict[str, str]:
    return {"number": path}


async def test_results_failures_and_deaths_are_outcomes_and_the_worker_lives_on(
    bench: Any,
) -> None:
    """One test for all of them, because starting a process takes its time."""
    first = bench.ready("adds", {"a": 1, "card": {"number": "4"}})
    cases = [
        ("adds", {"a": "x", "card": {"number": "4"}}, "argument", "adds"),
        ("raises", {"what": "value"}, "argument", "ValueError: bad"),
        ("raises", {"what": "odd"}, "transport", "_Odd: once"),
        ("raises", {"what": "permanent"}, "permanent", "Permanent: closed"),
        ("raises", {"what": "retryable"}, "retryable", "Retryable: later"),
        ("raises", {"what": "exit"}, "unknown", "SystemExit: 3"),
        ("returns", {"what": "object"}, "argument", "no JSON form"),
        ("returns", {"what": "large"}, "argument", "more than 65536"),
        ("dies", {"how": "exit"}, "crashed", "exited with status 7"),
        ("dies", {"how": "segfault"}, "crashed", "SIGSEGV"),
    ]
    failing = [bench.ready(name, payload) for name, payload, _, _ in cases]
    snoozed = bench.ready("raises", {"what": "snooze"})
    odd = bench.ready("returns", {"what": "text"})
    referring = bench.ready("adds", {"a": 2, "card": {"$ref": "cards/9"}})
    bench.handlers.resolves("cards")(named)
    await bench.work_off(first, *failing, snoozed, odd, referring, processes=2)
    result = bench.last(first).result
    assert (result["sum"], result["card"], result["key"]) == (2, "4", str(first.occurrence))
    for ready, (_, _, kind, said) in zip(failing, cases, strict=True):
        failed = bench.events(ready)[2]
        assert (failed.kind, said in failed.error) == (kind, True), failed
    assert bench.topics(snoozed)[-1] == "snoozed"
    assert bench.last(odd).result == "a\ufffdb?"
    assert bench.last(referring).result["card"] == "cards/9"


async def test_a_timeout_kills_the_process_with_all_that_it_started_and_so_does_the_worker_s_end(
    bench: Any, tmp_path: Path
) -> None:
    """A timeout counts from the handler's start, not from the process's."""
    files = [tmp_path / "one", tmp_path / "two"]
    runs = [
        bench.ready("hangs", {"into": str(files[0])}, timeout=0.3),
        bench.ready("hangs", {"into": str(files[1])}),
    ]
    for run in runs:
        bench.publish(run)
    async with bench.working(processes=2):
        await bench.until_ended(runs[0])
        await bench.until(lambda: files[1].exists() and files[1].read_text())
        (kept,) = bench.processes._all
        kept.writer.transport.abort()  # as the kernel does for a worker that was killed
        await bench.until_ended(runs[1])
    assert bench.last(runs[0]).error == "the handler did not end within its 0.3 s"
    assert bench.last(runs[1]).kind == "crashed"
    for file in files:
        assert all([await asyncio.to_thread(is_gone, int(pid)) for pid in file.read_text().split()])


def top_level(run: Run) -> None: ...


def test_what_another_process_cannot_run_is_refused_when_it_is_registered() -> None:
    handlers = Handlers()
    handlers.handles("fine", process=True)(top_level)

    async def coroutine(run: Run) -> None: ...

    def local(run: Run) -> None: ...

    with pytest.raises(InvalidSetting, match="async def"):
        handlers.handles("a", process=True)(coroutine)
    with pytest.raises(InvalidSetting, match="cannot be transactional"):
        handlers.handles("b", process=True, transactional=True)(top_level)
    with pytest.raises(InvalidSetting, match="define it at the top of a module"):
        handlers.handles("c", process=True)(local)
