"""Handlers that run in processes of their own: they compute, hang, and die."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from horolog import Permanent, Retryable, Run, Snooze, Worker

worker = Worker()


class Card(BaseModel):
    number: str


@worker.handles("adds", process=True)
def adds(run: Run, a: int, card: Card) -> dict[str, Any]:
    return {"sum": a + 1, "card": card.number, "pid": os.getpid(), "key": run.key,
            "attempt": run.attempt, "last": run.last_result}  # fmt: skip


class _Odd(Exception):
    """Known to this worker's table alone."""


worker.classifies(_Odd, "transport")


@worker.handles("raises", process=True)
def raises(run: Run, what: str) -> Any:
    raise {
        "value": ValueError("bad"),
        "odd": _Odd("once"),
        "permanent": Permanent("closed"),
        "retryable": Retryable("later", after=7),
        "snooze": Snooze(60),
        "exit": SystemExit(3),
    }[what]


@worker.handles("dies", process=True)
def dies(run: Run, how: str) -> None:
    if how == "exit":
        os._exit(7)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    ctypes.string_at(0)


@worker.handles("hangs", process=True)
def hangs(run: Run, into: str) -> None:
    """No polite signal stops it; it has a child of its own."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(into).write_text(f"{os.getpid()} {child.pid}")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(0.01)


@worker.handles("returns", process=True)
def returns(run: Run, what: str) -> Any:
    return {"text": "a\0b\ud800", "object": object(), "large": "x" * 1_000_000}[what]
