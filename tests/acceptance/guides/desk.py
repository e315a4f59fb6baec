"""Where a guide is followed: a terminal, what the words of the text stand for, the answers."""

import contextlib
import io
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.acceptance.conftest import Answer, Horolog

from horolog import Scheduler
from horolog.interface.settings import Settings


@dataclass
class Desk:
    """Where a guide is followed; ``processes`` also starts what goes on and asks what it serves."""

    terminal: Horolog
    processes: bool
    words: dict[str, str] = field(default_factory=dict[str, str])
    received: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    cleaning: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def namespace(self) -> str:
        return self.terminal.environment["HOROLOG_NAMESPACE"]

    @property
    def database_url(self) -> str:
        return self.terminal.environment["HOROLOG_DATABASE_URL"]

    def scheduler(self) -> Scheduler:
        settings = Settings.read(actor="guide", environment=self.terminal.environment)
        return Scheduler(settings=settings)

    def write(self, name: str, text: str) -> None:
        path = self.terminal.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def ask(self, *words: str, typed: str = "") -> Answer:
        """A command in this process, with what somebody types to it."""
        keyboard = io.TextIOWrapper(io.BytesIO(typed.encode()))
        with contextlib.chdir(self.terminal.folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", keyboard)
            return self.terminal.ask_within(*words)

    def listener(self) -> str:
        """The address of a server that keeps what it is sent."""
        received = self.received

        class Listener(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(
                    (self.path, self.rfile.read(int(self.headers["Content-Length"] or 0)))
                )
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.cleaning.callback(server.server_close)
        self.cleaning.callback(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"
