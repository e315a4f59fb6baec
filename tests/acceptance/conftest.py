"""The real command line on real servers; after each test `horolog verify` must find nothing."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from horolog import Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.cli.main import run
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log

PATIENCE_S = 60.0
"""How long something may take before a test gives it up; all is well long before."""

HOROLOG = [sys.executable, "-m", "horolog.interface.cli.main"]


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def last_line(self) -> Any:
        return json.loads(self.out.splitlines()[-1])


class Running:
    """A `horolog` process whose output is read line by line."""

    def __init__(self, arguments: list[str], environment: dict[str, str], folder: Path) -> None:
        self.process = subprocess.Popen(
            [*HOROLOG, *arguments],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.seen: list[str] = []
        self._lines: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for_line(self, wanted: Callable[[str], bool]) -> str:
        """The first line, from here on, that ``wanted`` accepts."""
        deadline = time.monotonic() + PATIENCE_S
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=min(left, 1.0))
            except Empty:
                if self.process.poll() is not None:
                    break  # it says nothing more
                continue
            if wanted(line):
                return line
        raise AssertionError(f"no such line among {self.seen[-20:]}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Tells the process to stop and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.seen.append(line.rstrip("\n"))
                self._lines.put(line.rstrip("\n"))


class Horolog:
    """Runs `horolog` on one namespace; ``environment`` is what its processes see."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self.folder = folder
        self._running: list[Running] = []

    def __call__(self, *arguments: str, status: int = 0, **environment: str) -> Answer:
        """Runs a command and expects its exit status."""
        answer = self.ask(*arguments, **environment)
        others = [line for running in self._running for line in running.seen[-10:]]
        assert answer.status == status, (arguments, answer, "the others said", others)
        return answer

    def ask(self, *arguments: str, **environment: str) -> Answer:
        """Runs a command, whatever its exit status."""
        done = subprocess.run(
            [*HOROLOG, *arguments],
            env=self.environment | environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * 3,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def within(self, *arguments: str, status: int = 0) -> Answer:
        """As a call, but in this process: for tables of commands that only look or are refused."""
        answer = self.ask_within(*arguments)
        assert answer.status == status, (arguments, answer)
        return answer

    def ask_within(self, *arguments: str) -> Answer:
        """The same, whatever the exit status."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.environment.items():
                patch.setenv(name, value)
            with redirect_stdout(out), redirect_stderr(err):
                ended = run(arguments)
        return Answer(ended, out.getvalue(), err.getvalue())

    def start(self, *arguments: str) -> Running:
        """Starts a command that goes on until it is stopped; the fixture sees to that."""
        running = Running(list(arguments), self.environment, self.folder)
        self._running.append(running)
        return running

    def start_scanner_and_worker(self, worker: str = "horolog.interface.samples:worker") -> None:
        self.start("scanner")
        self.start("worker", worker)

    def stop_all(self) -> None:
        running = [one for one in self._running if one.process.poll() is None]
        for one in running:
            one.process.send_signal(signal.SIGTERM)
        for one in running:
            one.stop()

    def verify(self) -> dict[str, Any]:
        """What `horolog verify` counts; fails the test where it finds a violation."""
        return self("verify", "--json").json


@pytest.fixture
def clean_environment() -> dict[str, str]:
    """The environment without anything that would lead a command elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HOROLOG_")}


@pytest.fixture
def horolog(
    database_url: str,
    nats_url: str,
    namespace: str,
    clean_environment: dict[str, str],
    tmp_path: Path,
) -> Generator[Horolog]:
    """The command line on a migrated namespace of the test's own."""
    database = Database(database_url, namespace)
    migrate(database)
    database.close()
    commands = Horolog(
        clean_environment
        | {
            "HOROLOG_DATABASE_URL": database_url,
            "HOROLOG_NATS_URL": nats_url,
            "HOROLOG_NAMESPACE": namespace,
        },
        tmp_path,
    )
    try:
        yield commands
    finally:
        commands.stop_all()
    report = verify_log(Settings.read(database_url, namespace=namespace, environment={}))
    assert report.ok, report.violations


@pytest.fixture
def scheduler(horolog: Horolog) -> Generator[Scheduler]:
    """The public API on the same namespace."""
    with Scheduler(
        horolog.environment["HOROLOG_DATABASE_URL"],
        namespace=horolog.environment["HOROLOG_NAMESPACE"],
        actor="tester",
    ) as client:
        yield client


def eventually(what: Callable[[], Any]) -> Any:
    """The first true answer of ``what``; asked again and again, with a deadline."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := what()):
        assert time.monotonic() < deadline, f"never so: {what}"
        time.sleep(0.05)
    return answer
