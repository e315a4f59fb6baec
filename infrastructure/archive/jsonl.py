"""An archive as JSON lines, compressed: one event a line, in the order of the log.

    {"position": …, "recorded_at": "…", "stream": "…", "version": …, "topic": "…", "state": {…}}

Any tool reads it (``zcat FILE | jq``), and :func:`archived` gives the events back, byte for byte.
"""

import base64
import gzip
import json
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import UUID

from horolog.application.retention.ports import Archived
from horolog.application.verify.ports import StoredEvent
from horolog.domain.errors import InvalidSetting

ENDING: Final = ".jsonl.gz"


class JsonLinesArchive:
    """As :class:`horolog.application.retention.ports.Archive` promises."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, events: Iterable[StoredEvent]) -> Archived:
        count = 0
        with whole_file(self._folder, name + ENDING) as file:
            # The time of writing is left out: the same events make the same file.
            with (
                file.open("wb") as raw,
                gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as lines,
            ):
                for event in events:
                    lines.write(_line(event))
                    count += 1
            digest = file_digest(file)
        return Archived(name + ENDING, digest, count)


def archived(file: Path) -> Iterator[StoredEvent]:
    """The events of an archived month, in their order. Raises ``InvalidSetting``."""
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield event_of_line(line)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise InvalidSetting(f"{file} is no archive of events: {error}") from error


@contextmanager
def whole_file(folder: Path, name: str) -> Generator[Path]:
    """A path to write to; the file gets its name when it is whole and on disk."""
    file = folder / f"{name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield file
        with file.open("rb") as written:
            os.fsync(written.fileno())
        file.replace(folder / name)
        listed = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(listed)
        finally:
            os.close(listed)
    except OSError as error:
        raise InvalidSetting(f"the archive {folder} cannot be written to: {error}") from error
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def file_digest(file: Path) -> str:
    hasher = sha256()
    with file.open("rb") as content:
        while piece := content.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()


def _line(event: StoredEvent) -> bytes:
    head = (
        f'{{"position": {event.position}, "recorded_at": "{event.recorded_at.isoformat()}",'
        f' "stream": "{event.stream}", "version": {event.version},'
        f' "topic": {json.dumps(event.topic)}, '
    )
    state = event.state
    if _is_one_line_of_json(state):
        return head.encode() + b'"state": ' + state + b"}\n"
    # An encrypted state, or a foreign one.
    return head.encode() + b'"state_base64": "' + base64.b64encode(state) + b'"}\n'


def _is_one_line_of_json(state: bytes) -> bool:
    if b"\n" in state or b"\r" in state:
        return False
    try:
        json.loads(state)
    except ValueError:
        return False
    return True


def event_of_line(line: str) -> StoredEvent:
    stated = json.loads(line)
    if "state_base64" in stated:
        state = base64.b64decode(stated["state_base64"])
    else:
        # The rest of the line, as it was stored.
        state = line[line.index('"state": ') + len('"state": ') : line.rindex("}")].encode()
    return StoredEvent(
        stated["position"],
        datetime.fromisoformat(stated["recorded_at"]),
        UUID(stated["stream"]),
        stated["version"],
        stated["topic"],
        state,
    )
