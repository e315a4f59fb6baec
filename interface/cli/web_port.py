"""A free port of loopback for the page of `horolog dev`, the usual one if it can be had."""

import socket

FIRST = 8480
TRIED = 50


def free_port(wanted: int | None) -> int:
    """``wanted``, or else the first free one from ``FIRST`` on, so that its address stays the same
    from start to start; any other where all of those are taken."""
    if wanted is not None:
        return wanted
    for port in range(FIRST, FIRST + TRIED):
        if _is_free(port):
            return port
    with socket.create_server(("127.0.0.1", 0)) as made:
        return made.getsockname()[1]


def _is_free(port: int) -> bool:
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
