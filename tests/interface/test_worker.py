"""``Worker`` and where the command line finds it."""

import asyncio
from pathlib import Path

import pytest

import horolog
from horolog import InvalidSetting, StoreUnavailable, Worker
from horolog.interface.processes.worker import run_worker
from horolog.interface.worker import load_worker


def test_a_worker_is_found_by_module_and_attribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    name = "jobs_of_a_test"
    Path(f"{name}.py").write_text(
        "from horolog import Worker\nworker = Worker(3)\nother = 3\n"
        "class Inner:\n    mine = Worker()\n"
    )
    assert load_worker(name).settings.concurrency == 3
    assert load_worker(f"{name}:worker") is load_worker(name)
    assert isinstance(load_worker(f"{name}:Inner.mine"), Worker)
    for place, why in (
        (f"{name}:other", "it is a int"),
        (f"{name}:nothing", "there is no such name"),
        (f"{name}:wroker", f"did you mean {name}:worker"),
        ("no_such_module_at_all:worker", "there is no module"),
        (":worker", "is no package.module:attribute"),
    ):
        with pytest.raises(InvalidSetting, match=why):
            load_worker(place)


def test_what_a_module_raises_itself_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    Path("broken_jobs_of_a_test.py").write_text("import no_such_dependency\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_worker("broken_jobs_of_a_test:worker")


def test_what_a_module_s_own_worker_refuses_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    Path("refused_jobs_of_a_test.py").write_text(
        "from horolog import Worker\nworker = Worker()\n"
        "@worker.handles('counts')\ndef counts(run):\n    yield 1\n"
    )
    Path("raising_jobs_of_a_test.py").write_text("int('x')\n")
    with pytest.raises(InvalidSetting, match="'counts' is a generator"):
        load_worker("refused_jobs_of_a_test:worker")
    with pytest.raises(ValueError, match="invalid literal"):
        load_worker("raising_jobs_of_a_test:worker")
    for place in ("", ":worker", ".jobs:worker", "jobs..more:worker"):
        with pytest.raises(InvalidSetting, match=r"is no package\.module:attribute"):
            load_worker(place)


def test_settings_that_make_no_sense_are_refused_by_name() -> None:
    with pytest.raises(InvalidSetting, match="concurrency"):
        Worker(0)
    with pytest.raises(InvalidSetting, match="two heartbeats must be able to fail"):
        Worker(lease_s=10, heartbeat_s=9)
    with pytest.raises(
        InvalidSetting, match=r"colour: a worker has no such setting; it has .*lease_s"
    ):
        Worker(colour="red")
    with pytest.raises(InvalidSetting, match="give a list"):
        Worker(queues="billing")


def test_the_vocabulary_of_workers_is_public() -> None:
    for name in ("Permanent", "Ref", "Retryable", "Run", "Snooze", "Worker", "WorkerSettings"):
        assert name in horolog.__all__
        assert getattr(horolog, name).__name__ == name


def test_a_queue_may_have_a_limit_of_its_own() -> None:
    worker = Worker(queues={"billing": 5, "mail": None})
    assert worker.queues == ["billing", "mail"]
    assert worker.settings.queue_limits == {"billing": 5}
    with pytest.raises(InvalidSetting, match="billing"):
        Worker(queues={"billing": 0})


async def test_a_worker_without_any_handler_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreUnavailable):
        await run_worker(
            Worker(),
            database_url="postgresql://nobody@127.0.0.1:1/none?connect_timeout=1",
            nats_url="nats://127.0.0.1:1",
            namespace="nothing",
            stop=asyncio.Event(),
        )
    assert "this worker has no handler: it can run nothing" in caplog.text
