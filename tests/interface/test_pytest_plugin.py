"""The plugin in a pytest of its own, as in a user's project."""

import subprocess
import sys
from pathlib import Path

TESTS = """
import sys
from datetime import UTC, datetime

import pytest

from horolog import Every, Run, Worker

worker = Worker()


@worker.handles("report")
def report(run: Run, amount: int) -> int:
    return amount * 2


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    assert "horolog.interface.testing" not in sys.modules


def test_every_run_succeeds_where_no_worker_is_given(simulated_scheduler) -> None:
    simulated_scheduler.register("anything", schedule=Every(60))
    assert simulated_scheduler.advance(minutes=2) == 2


class TestWithAWorker:
    @pytest.fixture
    def horolog_worker(self) -> Worker:
        return worker

    @pytest.mark.horolog(start=datetime(2027, 3, 1, tzinfo=UTC), takes={"report": 5.0})
    def test_its_handlers_run(self, simulated_scheduler) -> None:
        assert simulated_scheduler.now == datetime(2027, 3, 1, tzinfo=UTC)
        simulated_scheduler.register("report", schedule=Every(60), payload={"amount": 21})
        simulated_scheduler.advance(seconds=66)
        (done,) = simulated_scheduler.occurrences(state="succeeded")
        assert (done.result, done.seconds) == (42, 5.0)
"""


def test_a_user_s_tests_get_a_scheduler_in_simulated_time(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS)
    # Named, and found by its entry point where that is installed: it is loaded once either way.
    plugins = [
        "-p",
        "horolog.interface.pytest_plugin",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugins, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
