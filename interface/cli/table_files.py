"""Rows into a CSV or a Parquet file, as they come; a Parquet file in groups of a bounded size."""

import csv
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from horolog.interface.cli.columns import Column, Kind

ROW_GROUP: Final = 10_000


@contextmanager
def csv_file(
    path: Path | None, columns: Sequence[Column]
) -> Generator[Callable[[list[Any]], None]]:
    if path is None:
        yield _nowhere
        return
    with _opened(path) as file:
        writer = csv.writer(file)
        writer.writerow([column.name for column in columns])

        def write(row: list[Any]) -> None:
            writer.writerow([_as_text(value) for value in row])

        yield write


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error


@contextmanager
def parquet_file(
    path: Path | None, columns: Sequence[Column]
) -> Generator[Callable[[list[Any]], None]]:
    if path is None:
        yield _nowhere
        return
    try:
        pa: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise click.UsageError(
            "--parquet needs pyarrow, which is not installed: pip install 'horolog[parquet]'"
        ) from error
    types: dict[Kind, Any] = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
        "yes or no": pa.bool_(),
        "json": pa.string(),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
    rows: list[list[Any]] = []

    def flush() -> None:
        by_name = {
            column.name: [row[place] for row in rows] for place, column in enumerate(columns)
        }
        writer.write_table(pa.table(by_name, schema=schema))
        rows.clear()

    def write(row: list[Any]) -> None:
        rows.append(row)
        if len(rows) == ROW_GROUP:
            flush()

    try:
        with parquet.ParquetWriter(path, schema) as writer:
            yield write
            flush()
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error


def _nowhere(row: list[Any]) -> None:
    del row


def _as_text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
