"""Asking a NATS server, in its own protocol, whether it is ours and its JetStream answers.

The client library could ask too, but it needs an event loop, and callers of the embedded servers
may or may not be in one.
"""

import json
import secrets
import socket
from collections.abc import Iterator
from typing import cast

TIMEOUT_S = 2.0


def jetstream_answers(address: tuple[str, int], *, server: str, user: str, password: str) -> bool:
    """Whether the server of that name listens there, lets us in, and has JetStream ready.

    False also while it starts, and when some other program has the address; never raises.
    """
    try:
        with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            with connection.makefile("rb") as lines:
                verb, _, text = lines.readline().partition(b" ")
                if verb != b"INFO" or _object(text).get("server_name") != server:
                    return False
                inbox = f"_INBOX.{secrets.token_hex(8)}"
                options = json.dumps({"verbose": False, "user": user, "pass": password})
                request = f"SUB {inbox} 1\r\nPUB $JS.API.INFO {inbox} 0\r\n\r\n"
                connection.sendall(f"CONNECT {options}\r\n{request}".encode())
                return _answered(iter(lines.readline, b""))
    except (OSError, ValueError):
        return False


def _answered(lines: Iterator[bytes]) -> bool:
    for line in lines:
        if line.startswith(b"-ERR"):
            return False
        if line.startswith(b"MSG "):
            return "error" not in _object(next(lines, b""))
    return False


def _object(text: bytes) -> dict[str, object]:
    value: object = json.loads(text)
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
