"""Disks that run full: a file system of their own for each server, made small while it lasts.

    with small_disks(home) as disks:     before the servers of that home are started
        disks["postgres"].fill()         not one more page can be written
        disks["postgres"].free()

Only root may mount one. :func:`alone_with_mounts` gives the program a view of the mounts of its
own, so that nothing of them is left on the machine however it ends.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

ROOM = "4g"
"""Far more than is used; it is taken from memory only as it is filled."""

_ALONE = "HOROLOG_TORTURE_ALONE"


class SmallDisk:
    """A file system in memory at ``path``, whose size can be changed while it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=700", "none", str(self.path))

    def unmount(self) -> None:
        with suppress(subprocess.CalledProcessError):
            _run("umount", "--lazy", str(self.path))

    def fill(self) -> None:
        """Takes what is left, but for a few pages."""
        for spare in (1, 4, 16, 64, 256):
            found = os.statvfs(self.path)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize + spare * 4096
            with suppress(subprocess.CalledProcessError):  # somebody wrote in this moment
                _run("mount", "-o", f"remount,size={used}", str(self.path))
                return

    def free(self) -> None:
        _run("mount", "-o", f"remount,size={ROOM}", str(self.path))


@contextmanager
def small_disks(home: Path) -> Generator[Mapping[str, SmallDisk]]:
    """The disks of the two embedded servers of a home."""
    home.mkdir(mode=0o700)
    with ExitStack() as stack:
        disks: dict[str, SmallDisk] = {}
        for server in ("postgres", "nats"):
            disks[server] = disk = SmallDisk(home / server)
            disk.mount()
            stack.callback(disk.unmount)
        yield disks


def alone_with_mounts(module: str) -> bool:
    """Whether this process may mount file systems that nobody else sees.

    It is started again as such where it can be and is not yet.
    """
    if os.environ.pop(_ALONE, None):
        return True
    apart = ["unshare", "--mount", "--propagation", "private"]
    try:
        _run(*apart, "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt")
    except (OSError, subprocess.CalledProcessError):
        return False
    sys.stdout.flush()
    command = [*apart, sys.executable, "-m", module, *sys.argv[1:]]
    return os.execvpe(apart[0], command, os.environ | {_ALONE: "1"})


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
