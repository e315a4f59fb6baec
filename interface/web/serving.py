"""The process: one uvicorn server on one address, until it is told to stop."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

import uvicorn

from horolog.domain.errors import HorologError
from horolog.interface.settings import Settings
from horolog.interface.web.application import build, protected
from horolog.interface.web.settings import WebSettings

GRACE_S: Final = 5
"""How long requests may take to end once the server is told to stop."""


class AddressTaken(HorologError):
    """Somebody else listens there."""


def listening(web: WebSettings) -> socket.socket:
    """The socket; raises ``AddressTaken``, which says what to do."""
    host = web.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, web.port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise AddressTaken(
            f"the web server cannot listen on {web.host}:{web.port} ({error.strerror}): give"
            " another address (--host, --port; 0 takes a free port)"
        ) from None
    return made


def address(web: WebSettings, made: socket.socket) -> str:
    """Where a browser finds it."""
    port = made.getsockname()[1]
    name = web.names[0] if web.names else web.host
    name = f"[{name}]" if ":" in name and not name.startswith("[") else name
    return f"{'https' if web.tls_certificate is not None else 'http'}://{name}:{port}/"


def server_for(settings: Settings, web: WebSettings) -> uvicorn.Server:
    """The server, not started."""
    config = uvicorn.Config(
        protected(build(settings, web)),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        proxy_headers=web.behind_proxy,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=None if web.tls_certificate is None else str(web.tls_certificate),
        ssl_keyfile=None if web.tls_key is None else str(web.tls_key),
    )
    return uvicorn.Server(config)


def serve(settings: Settings, web: WebSettings, *, ready: Callable[[str], None]) -> None:
    """Serves until SIGTERM or Ctrl-C; ``ready`` is told the address once it is open."""
    made = listening(web)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    server = server_for(settings, web)
    try:
        ready(address(web, made))
        asyncio.run(server.serve(sockets=[made]))
    except KeyboardInterrupt:
        pass
    finally:
        made.close()
