"""Probes and metrics of a scanner and a worker that run, and of ones that cannot do their work."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from horolog import Once, Run, Scheduler, Worker
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.standing import Standing
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres.database import Database
from horolog.interface.processes.health_server import served
from horolog.interface.processes.monitor import Monitor
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.worker import run_worker
from horolog.interface.settings import Settings


async def asked(port: int, path: str) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        try:
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(ask)


async def until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not await true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def test_a_scanner_and_a_worker_tell_of_their_work(
    database: Database, scheduler: Scheduler, nats_url: str, stage: Any
) -> None:
    worker = Worker()

    @worker.handles("good")
    def good(run: Run) -> None: ...

    @worker.handles("bad")
    async def bad(run: Run) -> None:
        raise ValueError("never")

    place = Settings.read(database.url, nats_url=nats_url, namespace=database.namespace)
    scanning, working = Monitor(dead_after_s=30, namespace=place), Monitor(dead_after_s=30)
    stop = asyncio.Event()
    where: dict[str, Any] = {
        "database_url": database.url, "nats_url": nats_url, "namespace": database.namespace,
        "stop": stop,
    }  # fmt: skip
    with served(scanning, "127.0.0.1", 0) as scanner, served(working, "127.0.0.1", 0) as runner:
        status, said = await asked(scanner, "/readyz")
        assert (status, json.loads(said)["troubles"]) == (503, ["the process starts or stops"])
        tasks = [
            asyncio.create_task(run_scanner(**where, settings=ScannerSettings(), monitor=scanning)),
            asyncio.create_task(run_worker(worker, **where, monitor=working)),
        ]
        for name in ("good", "bad"):
            scheduler.register(name, schedule=Once(stage.now()), owner="ann")

        async def done() -> bool:
            return len(scheduler.occurrences()) == 2 and all(
                one.state in ("succeeded", "dead") for one in scheduler.occurrences()
            )

        await until(done)
        for port in (scanner, runner):
            assert (await asked(port, "/livez"))[0] == 200
            assert (await asked(port, "/readyz"))[0] == 200
        text = (await asked(scanner, "/metrics"))[1]
        assert "horolog_claim_lateness_seconds_count 2" in text
        assert 'horolog_append_seconds_count{writer="claims"}' in text
        assert 'horolog_signals_total{event="published"} 2' in text
        assert "horolog_leases 64" in text
        assert 'horolog_dead_letters{owner="ann"} 1' in text
        text = (await asked(runner, "/metrics"))[1]
        succeeded = 'failure="",name="good",outcome="succeeded",queue="default"'
        assert f"horolog_attempts_total{{{succeeded}}} 1" in text
        dead = 'failure="argument",name="bad",outcome="dead_lettered",queue="default"'
        assert f"horolog_attempts_total{{{dead}}} 1" in text
        assert 'horolog_start_lateness_seconds_count{queue="default"} 2' in text
        assert "horolog_up" not in text  # the namespace is the scanner's to tell of
        assert (await asked(runner, "/else"))[0] == 404
        stop.set()
        await asyncio.gather(*tasks)
        assert (await asked(scanner, "/readyz"))[0] == 503


async def test_what_keeps_a_process_from_its_work_is_said() -> None:
    monitor = Monitor(dead_after_s=0.1)
    away = Standing(["Postgres is away"], {"leases": 3.0})
    with served(monitor, "127.0.0.1", 0) as port, monitor.watching(lambda: away):
        status, said = await asked(port, "/readyz")
        assert (status, json.loads(said)) == (503, {"ok": False, "troubles": ["Postgres is away"]})
        assert (await asked(port, "/livez"))[0] == 200
        assert "horolog_ready 0.0" in (await asked(port, "/metrics"))[1]
        time.sleep(0.8)  # noqa: ASYNC251 - this blocks the loop, as a handler might
        assert "has not answered" in monitor.live()[0]


def test_a_port_that_is_taken_says_so() -> None:
    monitor = Monitor(dead_after_s=1)
    with (
        served(monitor, "127.0.0.1", 0) as port,
        pytest.raises(InvalidSetting, match=f"--health-port {port}"),
        served(monitor, "127.0.0.1", port),
    ):
        pass
