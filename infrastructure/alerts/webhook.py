"""A webhook: one POST of the notice as JSON. Any answer of 200 to 299 takes it.

No redirect is followed and no answer is read beyond its first line. What is said of a failure names
the host and never the path, which may be a key.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from horolog.application.alerting.ports import NotDelivered


async def post(url: str, notice: Mapping[str, Any]) -> None:
    """Posts the notice; raises ``NotDelivered``. Whoever calls it bounds its time."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    context = ssl.create_default_context() if secure else None
    host, port = str(parts.hostname), parts.port or (443 if secure else 80)
    body = json.dumps(notice).encode()
    writer = None
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.write(_head(parts, len(body)) + body)
        await writer.drain()
        line = await reader.readline()
    except (OSError, ValueError, EOFError) as error:
        raise NotDelivered(f"{host} cannot be reached: {type(error).__name__}") from error
    finally:
        if writer is not None:
            with suppress(OSError):
                writer.close()
    status = _status(line)
    if status is None:
        raise NotDelivered(f"{host} does not answer as an HTTP server does")
    if not 200 <= status < 300:
        raise NotDelivered(f"{host} answered {status}")


def _head(parts: SplitResult, length: int) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
        "User-Agent: horolog",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Connection: close",
    ]
    if parts.username is not None:
        known = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        lines.append(f"Authorization: Basic {base64.b64encode(known).decode()}")
    return "\r\n".join([*lines, "", ""]).encode()


def _status(line: bytes) -> int | None:
    words = line.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        return None
    return int(words[1])
