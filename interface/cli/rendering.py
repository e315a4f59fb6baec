"""What a command shows: tables that fit for people, JSON for programs, progress for the patient.

With ``--json`` standard output carries one document, or one object a line where the output is a
stream, and nothing else. Times are ISO 8601 with their offset, durations are seconds. Colour and
live views appear on a terminal only, and never where NO_COLOR is set (rich sees to that). What
users wrote (keys, owners, errors) commands no terminal and forges no line: see :func:`visible`.
"""

import json
import re
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import click

if TYPE_CHECKING:
    from rich.console import Console

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of a line; not the tab and the new line."""

PIPED_WIDTH = 400
"""Columns of a table that is not read on a terminal: nothing is folded for `grep` and `awk`."""


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

        On a narrow terminal columns are folded, except those that people copy (``whole``).
        """
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column in whole)
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        if table.row_count == 0:
            click.echo(empty)
        else:
            console().print(table)

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


def _cell(value: object) -> Any:
    from rich.text import Text

    shown = text(value)
    return Text(shown, style=_STATE_STYLES.get(shown, ""))
