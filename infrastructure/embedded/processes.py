"""Recognising the processes that are a home's servers, and ending only those.

A number in a pid file proves nothing: after ``kill -9`` or a reboot it may belong to anybody. So
no pid is taken from a file. A server carries its home's mark among its arguments, and the table of
processes is searched for a program of that name with that argument. A signal goes through a
descriptor of the process (pidfd, on Linux) that is opened before the arguments are looked at once
more: the number cannot pass to another program in between.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from horolog.infrastructure.embedded.home import POLL_S


@dataclass(frozen=True)
class Signature:
    """How one server is told from every other process: its program and one of its arguments."""

    program: str
    argument: str

    def matches(self, arguments: list[str]) -> bool:
        """Whether a process with these arguments is the server."""
        return arguments[0].rpartition("/")[2] == self.program and self.argument in arguments[1:]


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


def end(signature: Signature, pid: int, ways: Sequence[signal.Signals], each_s: float) -> bool:
    """Try one signal after another, ``each_s`` seconds apart; whether the server has ended.

    Ended means that the kernel has closed its sockets and locks. Its arguments are gone a little
    earlier: to go by them would find the port of a killed server still taken.
    """
    descriptor = _descriptor(pid)
    try:
        for way in ways:
            if not is_running(signature, pid):
                return True
            try:
                _send(pid, descriptor, way)
            except ProcessLookupError:
                return True
            if _ended_within(pid, descriptor, each_s):
                return True
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return False


def _descriptor(pid: int) -> int | None:
    """A descriptor that stands for this process and no later one; None where there are none.

    Some builds of Python and some sandboxes lack them: then only the look at the arguments, a
    moment before the signal, stands between us and a stranger.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _send(pid: int, descriptor: int | None, number: signal.Signals) -> None:
    if descriptor is not None and sys.platform == "linux":
        signal.pidfd_send_signal(descriptor, number)
    else:
        os.kill(pid, number)


def _ended_within(pid: int, descriptor: int | None, timeout_s: float) -> bool:
    if descriptor is not None:
        end_of_process = select.poll()
        end_of_process.register(descriptor, select.POLLIN)
        return bool(end_of_process.poll(timeout_s * 1000))
    deadline = time.monotonic() + timeout_s
    while next(iter(_entries([pid])), None) is not None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_S)
    return True


def awaited(
    signature: Signature, pid: int, answers: Callable[[], bool], timeout_s: float
) -> Literal["answers", "ended", "silent"]:
    """Wait until the server answers, or ends, or ``timeout_s`` have passed; which of them it was.

    ``pid`` may have been started this moment: between the shell's fork and its exec the process
    does not look like the server yet, and is not taken for one that has ended.
    """
    deadline = time.monotonic() + timeout_s
    seen = False
    while time.monotonic() < deadline:
        if answers():
            return "answers"
        running = is_running(signature, pid)
        seen = seen or running
        if not running and (seen or not arguments_of(pid)):
            return "ended"
        time.sleep(POLL_S)
    return "silent"


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
        if status[0] not in (b"Z", b"X"):  # a zombie has ended; nobody has looked yet
            arguments = [os.fsdecode(part) for part in line.rstrip(b"\0").split(b"\0")]
            yield _Entry(pid, int(status[1]), arguments)


def _listed_by_ps(which: list[str]) -> Iterator[_Entry]:
    """Where there is no /proc: ``ps``, which joins the arguments with spaces.

    The program's path may hold spaces of its own; it ends where the first option begins.
    """
    listing = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-o", "pid=,ppid=,state=,command=", *which],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listing.stdout.splitlines():
        pid, parent, state, command = line.split(None, 3)
        if not state.startswith("Z"):
            program, _, options = command.partition(" -")
            yield _Entry(int(pid), int(parent), [program, *f"-{options}".split()])
