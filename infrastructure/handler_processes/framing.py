"""How a worker and a handler's process speak: JSON documents with their length before them."""

import json
from struct import Struct
from typing import Any, Final

LENGTH: Final = Struct("!I")


def framed(document: dict[str, Any]) -> bytes:
    """The bytes of one document."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return LENGTH.pack(len(body)) + body
