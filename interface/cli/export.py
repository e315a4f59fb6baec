"""Listings as files for analysts: CSV, or Parquet where pyarrow is installed.

An export takes every page of a listing and holds one at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from horolog.interface.cli.columns import columns_of
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.table_files import csv_file, parquet_file

R = TypeVar("R")
T = TypeVar("T")

PAGE: Final = 1_000


@dataclass(frozen=True)
class Files:
    """Where a listing is to be written, if anywhere."""

    csv: Path | None = None
    parquet: Path | None = None

    def __bool__(self) -> bool:
        return self.csv is not None or self.parquet is not None

    def write(self, output: Output, answers: Iterable[object], kind: type[Any]) -> None:
        """Writes the answers, which are of one class, and says how many."""
        columns = columns_of(kind)
        with (
            csv_file(self.csv, columns) as to_csv,
            parquet_file(self.parquet, columns) as to_parquet,
        ):
            written = 0
            for answer in answers:
                row = [column.value(answer) for column in columns]
                to_csv(row)
                to_parquet(row)
                written += 1
        names = [str(path) for path in (self.csv, self.parquet) if path is not None]
        if output.as_json:
            output.document({"rows": written, "files": names})
        else:
            output.say(f"{written} rows in {' and '.join(names)}")


def exportable(function: Callable[..., R]) -> Callable[..., R]:
    """Adds ``--csv`` and ``--parquet``; the function gets ``files``."""

    @wraps(function)
    def call(*arguments: Any, to_csv: str | None, to_parquet: str | None, **options: Any) -> R:
        files = Files(_path(to_csv), _path(to_parquet))
        return function(*arguments, files=files, **options)

    for name, form in (("parquet", "Parquet"), ("csv", "CSV")):
        call = click.option(
            f"--{name}",
            f"to_{name}",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"Write all of it to a {form} file.",
        )(call)
    return call


def some_or_all(shown: int) -> Callable[..., Any]:
    """Adds ``--limit``: ``shown`` of them on a screen, all of them in a file."""
    return click.option(
        "--limit", type=click.IntRange(1), help=f"At most so many.  [default: {shown}; files: all]"
    )


def pages(
    page: Callable[[Any, int], Sequence[T]],
    place: Callable[[T], Any],
    after: Any,
    limit: int | None,
) -> Iterator[T]:
    """The answers of one page after the other, ``limit`` at most (all, where it is ``None``)."""
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        found = page(after, size)
        yield from found
        if len(found) < size:
            return
        after = place(found[-1])
        left = None if left is None else left - len(found)


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
