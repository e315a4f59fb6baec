"""Scanners and workers as processes of their own, which end with the process that started them.

`horolog dev` and the demo run the same commands as production does: `horolog scanner`, `horolog
worker`. A child holds the reading end of a pipe; whatever ends the parent, SIGKILL included, closes
the other end, and the child stops as if it had been told to (`--until-stdin-closes`). It has a
process group of its own, so that Ctrl-C reaches the parent alone, which lets it drain.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from horolog.domain.errors import HorologError
from horolog.interface.settings import Settings

POLL_S = 0.05


class ProcessFailed(HorologError):
    """A process that was started for the user ended by itself; the message has its last words.

    ``status`` is its exit status, negative for the signal that ended it.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Child:
    """A running `horolog` process. ``output`` is the file that has its words, if one was given."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path | None = None

    @classmethod
    def start(
        cls,
        name: str,
        arguments: Sequence[str],
        settings: Settings,
        *,
        output: Path | None = None,
    ) -> "Child":
        """Runs `horolog ARGUMENTS` on what ``settings`` connect to.

        The place goes through the environment, since a URL may hold a password and everybody can
        read the arguments of a process.
        """
        environment = os.environ | {
            "HOROLOG_DATABASE_URL": settings.all_database_urls(),
            "HOROLOG_NATS_URL": settings.nats_url(),
            "HOROLOG_NAMESPACE": settings.namespace,
            "HOROLOG_HOME": str(settings.home),
            "HOROLOG_LOG": "" if settings.log is None else str(settings.log),
        }
        command = [sys.executable, "-m", "horolog.interface.cli.main", *arguments]
        sink = None if output is None else output.open("ab")
        try:
            process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                [*command, "--until-stdin-closes"],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                env=environment,
                start_new_session=True,
            )
        finally:
            if sink is not None:
                sink.close()
        return cls(name, process, output)

    def check(self) -> None:
        """Raises ``ProcessFailed`` if the process has ended."""
        status = self.process.poll()
        if status is None:
            return
        words = ""
        if self.output is not None:
            lines = self.output.read_text(errors="replace").strip().splitlines()
            words = f": {' / '.join(lines[-3:])}" if lines else ""
        raise ProcessFailed(f"the {self.name} ended by itself with status {status}{words}", status)

    def tell_to_stop(self) -> None:
        """Asks for a graceful stop; returns at once."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float) -> int:
        """The exit status; kills what has not ended after ``timeout_s``."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            if self.process.stdin is not None:
                self.process.stdin.close()


def stop_all(children: Sequence[Child], timeout_s: float) -> None:
    """Stops all of them at once, and waits until they have drained, ``timeout_s`` in all."""
    deadline = monotonic() + timeout_s
    for child in children:
        child.tell_to_stop()
    for child in children:
        child.wait(max(0.1, deadline - monotonic()))


def stop_when_stdin_closes() -> None:
    """Sends this process SIGTERM when its parent has gone."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
