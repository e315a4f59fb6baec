"""A temporary directory with servers in it that goes away with its owner, however that ends.

A process of its own waits for its input to be closed, which the kernel does also for an owner that
was killed; then it stops the servers and removes the directory. Without it a demo that a CI system
killed would leave a Postgres behind, each time.
"""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_KEEPER = """
import shutil, sys
from pathlib import Path
sys.stdin.read()
from horolog.infrastructure.embedded import EmbeddedServers
try:
    EmbeddedServers(Path(sys.argv[1], "home")).stop()
finally:
    shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


@contextmanager
def temporary_folder() -> Generator[Path]:
    """A fresh directory; servers may have their home in its ``home``. Gone when this returns."""
    folder = Path(tempfile.mkdtemp(prefix="horolog-demo-"))
    keeper = subprocess.Popen(  # noqa: S603 - our own program, no shell
        [sys.executable, "-c", _KEEPER, str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        keeper.communicate()
