"""The fixtures of the test session leave nothing behind, however the session ends."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from horolog.infrastructure.embedded import EmbeddedServers

_SESSION = """
import signal
from tests.conftest import TemporaryHomes
with TemporaryHomes().servers() as servers:
    print(servers.home, flush=True)
    signal.pause()
"""


def test_a_session_that_is_killed_leaves_no_servers_and_no_files():
    root = Path(__file__).parents[3]
    session = subprocess.Popen(
        [sys.executable, "-c", _SESSION], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert session.stdout is not None
    home = Path(session.stdout.readline().strip())
    assert EmbeddedServers(home).find() is not None
    session.send_signal(signal.SIGKILL)
    session.communicate()
    deadline = time.monotonic() + 30
    while home.parent.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not home.parent.exists()
