"""What a command shows: tables that fit for people, JSON for programs, progress for the patient.

With ``--json`` standard output carries one document, or one object a line where the output is a
stream, and nothing else. Times are ISO 8601 with their offset, durations are seconds. Colour and
live views appear on a terminal only, and never where NO_COLOR is set (rich sees to that). What
users wrote (keys, owners, errors) commands no terminal and forges no line: see :func:`visible`.
"""

import json
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of a line; not the tab and the new line."""

PIPED_WIDTH = 400
"""Columns of a table that is not read on a terminal: nothing is folded for `grep` and `awk`."""

MOST_FOLDED = 1.25
"""A table that is wider than so many times the terminal is shown as paragraphs."""


class Output:
    """Where a command's answer goes."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def document(self, value: object) -> None:
        """One JSON document."""
        click.echo(json.dumps(document(value), indent=2, ensure_ascii=False))

    def line(self, value: object) -> None:
        """One JSON object on a line of its own, at once."""
        click.echo(json.dumps(document(value), ensure_ascii=False, separators=(", ", ": ")))
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """A sentence for people; nothing where the answer is JSON."""
        if not self.as_json:
            click.echo(text)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        empty: str,
        whole: Sequence[str] = ("id",),
    ) -> None:
        """A table for people; ``empty`` is said where there are no rows.

        On a narrow terminal columns are folded, except those that people copy (``whole``); where
        they would be folded to shreds, each row is a paragraph instead.
        """
        from rich.box import SIMPLE_HEAD
        from rich.measure import Measurement
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column in whole)
        cells = [[_cell(value) for value in row] for row in rows]
        for row in cells:
            table.add_row(*row)
        if not cells:
            click.echo(empty)
            return
        shown = console()
        natural = Measurement.get(shown, shown.options.update(max_width=PIPED_WIDTH), table)
        if natural.maximum <= MOST_FOLDED * shown.width:
            shown.print(table)
            return
        for row in cells:
            for line in _paragraph(list(zip(columns, row, strict=True)), shown.width):
                shown.print(line, soft_wrap=True)

    def fields(self, values: Mapping[str, object]) -> None:
        """One thing, a line for each of its fields that has a value."""
        shown = {name: value for name, value in values.items() if value not in (None, "", {}, [])}
        width = max((len(name) for name in shown), default=0)
        for name, value in shown.items():
            lines = text(value).replace("\n", "\n" + " " * (width + 2))
            click.echo(f"{click.style(name.ljust(width), dim=True)}  {lines}")

    @contextmanager
    def progress(self, what: str, total: float | None = None) -> Generator["Advances"]:
        """A bar on a terminal's stderr; the body says how much is done, and of how much."""
        if self.as_json or not sys.stderr.isatty():
            yield _silently
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}"),
            TimeElapsedColumn(),
            console=console(stderr=True),
            transient=True,
        )
        with display:
            task = display.add_task(what, total=total)

            def advance(done: float, of: float | None = None) -> None:
                display.update(task, completed=done, total=total if of is None else of)

            yield advance


class Advances(Protocol):
    """Told now and then how much is done, in all, and of how much where that is known."""

    def __call__(self, done: float, of: float | None = None) -> None: ...


def _silently(done: float, of: float | None = None) -> None:
    del done, of


def console(*, stderr: bool = False) -> "Console":
    """A console on standard output or error; wide where nobody looks at it on a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False)


def document(value: object) -> Any:
    """The JSON form of what the API returns; the answers say it themselves."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        return {name: document(item) for name, item in mapping.items()}
    if isinstance(value, list | tuple):
        return [document(item) for item in cast("Iterable[object]", value)]
    to_dict = getattr(value, "to_dict", None)
    return _plain(value) if to_dict is None else to_dict()


def _plain(value: object) -> Any:
    from horolog.application.answers.plain import plain

    return plain(value)


def text(value: object) -> str:
    """A value as people read it: times to the millisecond, absent ones as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    if isinstance(value, float):
        return f"{value:g}"
    value = value if isinstance(value, str) else _plain(value)
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def visible(words: str) -> str:
    """The words with what would move the cursor or change the colours written out."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), words)


def on_one_line(words: str) -> str:
    """As :func:`visible`, with new lines and tabs written out too."""
    return visible(words).replace("\n", "\\n").replace("\t", "\\t")


_STATE_STYLES = {
    "active": "green",
    "succeeded": "green",
    "running": "cyan",
    "stopping": "cyan",
    "claimed": "cyan",
    "retrying": "yellow",
    "paused": "yellow",
    "dead": "red",
    "cancelled": "dim",
    "completed": "dim",
    "skipped": "dim",
    "discarded": "dim",
}


def _cell(value: object) -> "Text":
    from rich.text import Text

    shown = text(value)
    return Text(shown, style=_STATE_STYLES.get(shown, ""))


def _paragraph(row: "Sequence[tuple[str, Text]]", width: int) -> "Iterator[Text]":
    """A row of a table on lines of its own: the first cell, then as many others as fit a line,
    each behind its column's name; those that are empty are left out."""
    from rich.text import Text

    (_, first), *others = row
    yield first
    line = Text("  ")
    for name, value in others:
        if not value.plain:
            continue
        piece = Text.assemble((f"{name} ", "dim"), value)
        if line.plain.strip() and line.cell_len + 3 + piece.cell_len > width:
            yield line
            line = Text("  ")
        line.append_text(Text("   ") if line.plain.strip() else Text("")).append_text(piece)
    if line.plain.strip():
        yield line
