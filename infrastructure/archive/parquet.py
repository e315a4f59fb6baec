"""An archive as Parquet, for analysts; needs the extra ``parquet`` (pyarrow)."""

from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final

from horolog.application.retention.ports import Archived
from horolog.application.verify.ports import StoredEvent
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.archive.jsonl import file_digest, whole_file

ENDING: Final = ".parquet"
ROWS: Final = 50_000
"""Events in a row group: what is held in memory."""


class ParquetArchive:
    """As :class:`horolog.application.retention.ports.Archive` promises.

    Columns: position, recorded_at, stream, version, topic, state (the JSON as text).
    """

    def __init__(self, folder: Path) -> None:
        """Raises ``InvalidSetting`` where pyarrow is not installed."""
        self._folder = folder
        try:
            self._arrow: Any = import_module("pyarrow")
            self._parquet: Any = import_module("pyarrow.parquet")
        except ImportError as error:
            raise InvalidSetting(
                "a Parquet archive needs pyarrow: pip install 'horolog[parquet]'"
            ) from error

    def write(self, name: str, events: Iterable[StoredEvent]) -> Archived:
        arrow = self._arrow
        schema = arrow.schema(
            [
                ("position", arrow.int64()),
                ("recorded_at", arrow.timestamp("us", tz="UTC")),
                ("stream", arrow.string()),
                ("version", arrow.int32()),
                ("topic", arrow.dictionary(arrow.int32(), arrow.string())),
                ("state", arrow.string()),
            ]
        )
        count, remaining = 0, iter(events)
        with whole_file(self._folder, name + ENDING) as file:
            with self._parquet.ParquetWriter(file, schema, compression="zstd") as writer:
                while rows := list(islice(remaining, ROWS)):
                    writer.write_table(arrow.Table.from_pylist([_row(e) for e in rows], schema))
                    count += len(rows)
            digest = file_digest(file)
        return Archived(name + ENDING, digest, count)


def _row(event: StoredEvent) -> dict[str, Any]:
    return {
        "position": event.position,
        "recorded_at": event.recorded_at,
        "stream": str(event.stream),
        "version": event.version,
        "topic": event.topic,
        "state": event.state.decode(errors="backslashreplace"),
    }
