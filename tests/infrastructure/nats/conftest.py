"""A NATS server with a configuration of the test's own."""

import socket
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from horolog.infrastructure.embedded.accounts import ourselves
from horolog.infrastructure.embedded.wheels import nats_program

Starts = Callable[..., int]


@pytest.fixture
def starts(tmp_path: Path) -> Generator[Starts]:
    """Starts a server on loopback with this much more of a configuration; its port."""
    running: list[subprocess.Popen[bytes]] = []

    def start(more: str, environment: dict[str, str] | None = None) -> int:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        file = tmp_path / f"nats-{port}.conf"
        file.write_text(
            f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{tmp_path}/js-{port}" }}\n'
            f"{more}\n"
        )
        running.append(
            subprocess.Popen(
                [nats_program(ourselves()), "-c", file], stderr=subprocess.DEVNULL, env=environment
            )
        )
        return port

    yield start
    for process in running:
        process.terminate()
        process.wait()
