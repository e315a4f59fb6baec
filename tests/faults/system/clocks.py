"""Machines whose clock is wrong: processes that are told another time of day than the servers.

A library of a few lines stands before the C library's clocks of the day, as `faketime` does, and
adds what a file says; so a clock can be wrong from the start, and be stepped while its process
runs. Steady clocks are left alone. Where no C compiler is, there are no such machines.
"""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long long *ahead_s;
static int (*theirs)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WRONG_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(0, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) ahead_s = page;
        close(file);
    }
}

int clock_gettime(clockid_t clock, struct timespec *told) {
    if (!theirs) theirs = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = theirs(clock, told);
    if (!done && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        told->tv_sec += *ahead_s;
    return done;
}

int gettimeofday(struct timeval *restrict told, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}
"""


class WrongClocks:
    """Makes places to live with a wrong clock: :attr:`possible` where there is a C compiler."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "clocks"
        self._library = self._folder / "wrong_clock.so"
        self._files = (self._folder / f"clock-{number}" for number in count())
        self.possible = self._build()

    def place(self, ahead_s: int) -> dict[str, str]:
        """The environment of a process whose clock is so far ahead (or behind)."""
        file = next(self._files)
        file.write_bytes(struct.pack("q", ahead_s))
        return {"LD_PRELOAD": str(self._library), "WRONG_CLOCK": str(file)}

    def step(self, place: Mapping[str, str], ahead_s: int) -> None:
        """From now on a process of this place has so much."""
        with Path(place["WRONG_CLOCK"]).open("r+b") as file:
            file.write(struct.pack("q", ahead_s))

    def _build(self) -> bool:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        source = self._folder / "wrong_clock.c"
        source.write_text(_SOURCE)
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", self._library, source, "-ldl"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
