"""What every process takes while it lasts: memory and connections, once a second or so."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

Pids = Callable[[], Mapping[str, list[int]]]
"""The processes by name; those of a server are counted together."""

PAUSE_S = 1.0
PAGE = os.sysconf("SC_PAGE_SIZE")


class Watched:
    """``memory`` are megabytes by name, each with its second; ``counts`` are numbers likewise."""

    def __init__(self, pids: Pids, counts: Callable[[], Mapping[str, int]]) -> None:
        self._pids = pids
        self._counts = counts
        self._began = time.monotonic()
        self.memory: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.counts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._stop = Event()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    def most(self, name: str, since: float, until: float) -> float:
        """The most megabytes of a process between two seconds; 0 where it was not there."""
        return max((mb for at, mb in self.memory[name] if since <= at <= until), default=0.0)

    def highest(self, name: str, since: float = 0.0) -> int:
        return max((number for at, number in self.counts[name] if at >= since), default=0)

    @contextmanager
    def watching(self) -> Generator[None]:
        thread = Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(30)

    def _watch(self) -> None:
        while not self._stop.wait(PAUSE_S):
            at = self.now
            for name, pids in self._pids().items():
                self.memory[name].append((at, sum(megabytes(pid) for pid in pids)))
            for name, number in self._counts().items():
                self.counts[name].append((at, number))


def megabytes(pid: int) -> float:
    """What a process holds, its share of what it has in common with others; 0 once it is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def children(pid: int) -> list[int]:
    """A process and those that it has started."""
    found = [pid]
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            stat = (directory / "stat").read_text().rpartition(")")[2].split()
            if int(stat[1]) == pid:
                found.append(int(directory.name))
    return found
