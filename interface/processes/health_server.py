"""Probes and metrics of one process, over HTTP on a thread of its own.

    GET /livez     200 while the process works; 503 when its event loop has not answered for long
    GET /readyz    200 while it can do its work; 503 and the reasons while a service is away
    GET /metrics   what it measured, as Prometheus' text; a scanner's also has the whole namespace

The thread answers whatever the event loop does, so a blocked loop is reported and not just silent.
Listens on loopback unless told otherwise. There is nothing here that changes anything.
"""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from horolog.domain.errors import InvalidSetting
from horolog.interface.processes.monitor import Monitor

log = logging.getLogger("horolog.monitor")


@contextmanager
def served(monitor: Monitor, host: str, port: int) -> Generator[int]:
    """Answers on ``host`` and ``port`` (0: a free one); the port. Raises ``InvalidSetting``."""

    class Answering(BaseHTTPRequestHandler):
        server_version = "horolog"
        sys_version = ""
        timeout = 10

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/livez":
                    self._probe(monitor.live())
                case "/readyz":
                    self._probe(monitor.live() + monitor.ready())
                case "/metrics":
                    self._answer(HTTPStatus.OK, monitor.text(), "text/plain; version=0.0.4")
                case _:
                    known = "there are /livez, /readyz and /metrics\n"
                    self._answer(HTTPStatus.NOT_FOUND, known, "text/plain")

        def _probe(self, troubles: list[str]) -> None:
            status = HTTPStatus.SERVICE_UNAVAILABLE if troubles else HTTPStatus.OK
            body = json.dumps({"ok": not troubles, "troubles": troubles}) + "\n"
            self._answer(status, body, "application/json")

        def _answer(self, status: HTTPStatus, body: str, kind: str) -> None:
            data = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            log.debug(format, *args)

    try:
        server = ThreadingHTTPServer((host, port), Answering)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(f"--health-port {port} on {host} cannot be used: {error}") from None
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="horolog-health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
