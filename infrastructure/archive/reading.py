"""Archives read again: which files may hold an occurrence, and its events in them.

An id begins with its fire time, and a file's name with the month of its fire times (or ``rest``, of
any). A file is gone through line by line; what is not asked for is passed over undecoded.
"""

import gzip
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from pydantic_core import from_json

from horolog.application.log import Recorded
from horolog.application.queries.archives import ArchivedLife
from horolog.application.queries.audit_ports import ExecutionChoice
from horolog.application.verify.ports import StoredEvent
from horolog.domain.errors import InvalidSetting
from horolog.domain.event import read_event
from horolog.domain.ids import EPOCH, fire_millisecond
from horolog.domain.occurrence_events import Claimed
from horolog.infrastructure.archive.jsonl import event_of_line

_NAME: Final = re.compile(r"occurrences-(\d{4}-\d{2}|rest)-\d+-\d+\.(jsonl\.gz|parquet)")
_CLAIMED: Final = (b'"version": 1, ', f'"topic": "{Claimed.topic}"'.encode())
_ROWS: Final = 50_000


class ArchiveFolder:
    """As :class:`horolog.application.queries.archives.ReadsArchive` promises."""

    def __init__(self, folder: Path) -> None:
        """Raises ``InvalidSetting`` for a folder without any file of an archive."""
        self._files = sorted(file for file in folder.glob("*") if _NAME.fullmatch(file.name))
        if not self._files:
            raise InvalidSetting(
                f"{folder} holds no archive: give the folder that `horolog retention --archive`"
                " has written to"
            )

    def life(self, occurrence_id: UUID) -> ArchivedLife | None:
        lives = self.lives([occurrence_id])
        return lives[0] if lives else None

    def lives(self, ids: Sequence[UUID]) -> list[ArchivedLife]:
        wanted = set(ids)
        found: dict[UUID, ArchivedLife] = {}
        for file in self._holding({_month(identity) for identity in ids}):
            lives: dict[UUID, dict[int, Recorded]] = {}
            for event in _events(file, streams=wanted - found.keys()):
                lives.setdefault(event.stream, {})[event.version] = _recorded(event)
            for identity, life in lives.items():
                events = [life[version] for version in sorted(life)]
                found[identity] = ArchivedLife(file.name, events)
        return [found[identity] for identity in sorted(found)]

    def claimed(self, wanted: ExecutionChoice, *, after: UUID | None, limit: int) -> list[UUID]:
        low = wanted.since if after is None else max(wanted.since or EPOCH, fire_millisecond(after))
        found: set[UUID] = set()
        for file in self._between(low, wanted.until):
            claims = _events(file, claims_of=wanted.jobs.job_id, claims=True)
            fits = (e.stream for e in claims if _fits(e, wanted, after))
            found = set(nsmallest(limit, {*found, *fits}))
        return sorted(found)

    def _holding(self, months: set[str]) -> Iterator[Path]:
        return (file for file in self._files if _said(file) in {*months, "rest"})

    def _between(self, since: datetime | None, until: datetime | None) -> Iterator[Path]:
        first = "" if since is None else f"{since.astimezone(UTC):%Y-%m}"
        last = "9999" if until is None else f"{until.astimezone(UTC):%Y-%m}"
        return (
            file for file in self._files if first <= _said(file) <= last or _said(file) == "rest"
        )


def _said(file: Path) -> str:
    match = _NAME.fullmatch(file.name)
    assert match is not None
    return match[1]


def _fits(event: StoredEvent, wanted: ExecutionChoice, after: UUID | None) -> bool:
    if after is not None and event.stream <= after:
        return False
    fire = datetime.fromisoformat(from_json(event.state)["fire_time"])
    return (wanted.since is None or fire >= wanted.since) and (
        wanted.until is None or fire < wanted.until
    )


def _events(
    file: Path,
    *,
    streams: set[UUID] | None = None,
    claims: bool = False,
    claims_of: UUID | None = None,
) -> Iterator[StoredEvent]:
    """The events of ``streams``, or the first claims (of one job, if one is given)."""
    if file.suffix == ".parquet":
        yield from _of_parquet(file, streams, claims=claims, claims_of=claims_of)
        return
    names = {str(stream).encode() for stream in streams or ()}
    needles = (*_CLAIMED, *([] if claims_of is None else [str(claims_of).encode()]))
    try:
        with gzip.open(file, "rb") as lines:
            for line in lines:
                if claims:
                    if all(needle in line for needle in needles):
                        yield event_of_line(line.decode())
                elif _stream(line) in names:
                    yield event_of_line(line.decode())
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise InvalidSetting(f"{file} is no archive of events: {error}") from error


def _stream(line: bytes) -> bytes:
    start = line.index(b'"stream": "') + len(b'"stream": "')
    return line[start : start + 36]


def _of_parquet(
    file: Path, streams: set[UUID] | None, *, claims: bool, claims_of: UUID | None
) -> Iterator[StoredEvent]:
    try:
        dataset: Any = import_module("pyarrow.dataset")
    except ImportError as error:
        raise InvalidSetting(
            "a Parquet archive needs pyarrow: pip install 'horolog[parquet]'"
        ) from error
    if claims:
        chosen = (dataset.field("version") == 1) & (dataset.field("topic") == Claimed.topic)
    else:
        chosen = dataset.field("stream").isin([str(stream) for stream in streams or ()])
    needle = "" if claims_of is None else str(claims_of)
    try:
        batches = dataset.dataset(file).to_batches(filter=chosen, batch_size=_ROWS)
        for batch in batches:
            for row in batch.to_pylist():
                if needle in row["state"]:
                    yield StoredEvent(
                        row["position"],
                        row["recorded_at"],
                        UUID(row["stream"]),
                        row["version"],
                        row["topic"],
                        row["state"].encode(),
                    )
    except (OSError, ValueError, KeyError) as error:
        raise InvalidSetting(f"{file} is no archive of events: {error}") from error


def _recorded(event: StoredEvent) -> Recorded:
    where = f"at position {event.position} ({event.stream}:{event.version})"
    read = read_event(event.topic, event.state, where=where)
    return Recorded(event.position, event.recorded_at, event.stream, event.version, read)


def _month(identity: UUID) -> str:
    return f"{fire_millisecond(identity):%Y-%m}"
