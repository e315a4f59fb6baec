"""Recognising the processes that are a home's servers, and ending only those.

A number in a pid file proves nothing: after ``kill -9`` or a reboot it may belong to anybody. So
no pid is taken from a file. A server carries its home's mark among its arguments, and the table of
processes is searched for a program of that name with that argument. A signal goes through a
descriptor of the process (pidfd, on Linux) that is opened before the arguments are looked at once
more: the number cannot pass to another program in between.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from horolog.infrastructure.embedded.home import POLL_S


@dataclass(frozen=True)
class Signature:
    """How one server is told from every other process: its program and one of its arguments."""

    program: str
    argument: str

    def matches(self, arguments: list[str]) -> bool:
        """Whether a process with these arguments is the server."""
        return (
            len(arguments) > 0
            and arguments[0].rpartition("/")[2] == self.program
            and self.argument in arguments[1:]
        )


@dataclass(frozen=True)
class _Entry:
    pid: int
    parent: int
    arguments: list[str]


def find(signature: Signature) -> int | None:
    """The pid of the server, or None if it does not run.

    A process that was forked a moment ago still shows its parent's arguments: of a family that
    matches, the eldest is the server.
    """
    found = {entry.pid: entry for entry in _table() if signature.matches(entry.arguments)}
    for entry in found.values():
        if entry.parent not in found:
            return entry.pid
    return None


def is_running(signature: Signature, pid: int) -> bool:
    """Whether ``pid`` is the server, still."""
    return any(signature.matches(entry.arguments) for entry in _entries([pid]))


def arguments_of(pid: int) -> list[str]:
    """The arguments of whatever process has this pid now; empty if there is none."""
    for entry in _entries([pid]):
        return entry.arguments
    return []


def send(signature: Signature, pid: int, number: signal.Signals) -> bool:
    """Send a signal to ``pid`` if it is the server; whether it was."""
    if sys.platform != "linux":
        if not is_running(signature, pid):
            return False
        os.kill(pid, number)
        return True
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not is_running(signature, pid):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def gone_within(signature: Signature, pid: int, timeout_s: float) -> bool:
    """Wait until ``pid`` is no longer the server; whether that happened within ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while is_running(signature, pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def _table() -> Iterator[_Entry]:
    if sys.platform == "linux":
        return _entries([int(name) for name in os.listdir("/proc") if name.isdigit()])
    return _listed_by_ps(["-ax"])


def _entries(pids: list[int]) -> Iterator[_Entry]:
    if sys.platform != "linux":
        yield from _listed_by_ps(["-p", ",".join(map(str, pids))])
        return
    for pid in pids:
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            # The name in brackets may hold anything; what follows the last one is numbers.
            status = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if line and status[0] not in (b"Z", b"X"):  # a zombie has ended; nobody has looked yet
            arguments = [os.fsdecode(part) for part in line.rstrip(b"\0").split(b"\0")]
            yield _Entry(pid, int(status[1]), arguments)


def _listed_by_ps(which: list[str]) -> Iterator[_Entry]:
    """Where there is no /proc: ``ps``, which joins arguments with spaces (ours have none)."""
    listing = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-o", "pid=,ppid=,state=,command=", *which],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listing.stdout.splitlines():
        pid, parent, state, command = line.split(None, 3)
        if not state.startswith("Z"):
            yield _Entry(int(pid), int(parent), command.split())
