"""The log file of an embedded server: bounded, and quoted when the server fails."""

import os
from pathlib import Path

KEPT_BYTES = 8 * 1024 * 1024
QUOTED_LINES = 20


class ServerLog:
    """A file that a server appends to for as long as it runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        """Where the next line will be written, in bytes from the start."""
        try:
            return self.path.lstat().st_size
        except FileNotFoundError:
            return 0

    def trim(self) -> None:
        """Move the text to a second file, in place of what was there, once it is long.

        The server keeps its descriptor and appends at the new end; a line that it writes in the
        middle of this may be lost, which a log can bear and a full disk cannot.
        """
        if self.size() <= KEPT_BYTES:
            return
        earlier = self.path.with_name(self.path.name + ".1")
        earlier.unlink(missing_ok=True)
        with self.path.open("rb") as source, earlier.open("xb") as target:
            source.seek(-KEPT_BYTES, os.SEEK_END)
            target.write(source.read(KEPT_BYTES))
        earlier.chmod(0o600)
        os.truncate(self.path, 0)

    def quoted(self, *, since: int = 0) -> str:
        """The last lines written after the position ``since``, indented, for a message."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            text = b""
        if since <= len(text):
            text = text[since:]
        lines = text.decode(errors="replace").splitlines()[-QUOTED_LINES:]
        return "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"
