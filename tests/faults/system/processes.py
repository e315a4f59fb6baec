"""A scanner or a worker as a process of its own, to be killed, stopped and told to stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[3]


@dataclass
class Process:
    """``words`` is the file with everything that it said."""

    role: str
    popen: subprocess.Popen[bytes]
    words: Path
    started_at: float = field(default_factory=monotonic)
    ended_by_us: bool = False
    stopped: bool = False

    @classmethod
    def start(
        cls,
        role: str,
        module: str,
        arguments: Sequence[str],
        place: Mapping[str, str],
        words: Path,
        cwd: Path = ROOT,
    ) -> "Process":
        """Runs ``python -m module arguments`` with ``place`` in its environment."""
        with words.open("wb") as sink:
            popen = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=cwd,
                env=os.environ | place,
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        return cls(role, popen, words)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def status(self) -> int | None:
        """The exit status; ``None`` while it lives."""
        return self.popen.poll()

    @property
    def traceparent(self) -> None:
        return None

    @property
    def age_s(self) -> float:
        return monotonic() - self.started_at

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped, by whomever."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self.ended_by_us = True
        self.popen.kill()
        self.popen.wait()
        self._close()

    def stop(self) -> None:
        self.stopped = True
        self.popen.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.stopped = False
        self.popen.send_signal(signal.SIGCONT)

    def tell_to_stop(self) -> None:
        """SIGTERM; returns at once."""
        self.ended_by_us = True
        self.popen.send_signal(signal.SIGTERM)

    def wait(self, timeout_s: float = 20.0) -> int:
        """Its exit status; ``TimeoutExpired`` where it does not end."""
        status = self.popen.wait(timeout_s)
        self._close()
        return status

    def last_words(self, lines: int = 5) -> str:
        return " / ".join(self.words.read_text(errors="replace").splitlines()[-lines:])

    def errors(self) -> list[str]:
        """What it said at the level of errors."""
        text = self.words.read_text(errors="replace")
        return [line for line in text.splitlines() if " ERROR " in line or "Traceback" in line]

    def _close(self) -> None:
        if self.popen.stdin is not None:
            self.popen.stdin.close()
