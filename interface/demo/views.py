"""How a running demo is shown: live on a terminal, plain lines elsewhere, JSON on request."""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from horolog.application.answers.logged_event import LoggedEvent
from horolog.domain.partition import PartitionEvent
from horolog.interface.cli.event_lines import EventLines
from horolog.interface.cli.rendering import Output, console, text
from horolog.interface.cli.schedule_text import schedule_text
from horolog.interface.demo.tally import JobAccount, Tally

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

LATEST = 14
"""Events in the live view at a time."""


class View(Protocol):
    """What the program tells while it runs."""

    def step(self, what: str) -> None:
        """Something begins, or a person acts."""
        ...

    def event(self, logged: LoggedEvent) -> None:
        """An event of the log; it is in the tally already."""
        ...

    def tick(self, elapsed_s: float) -> None:
        """Time goes on; called several times a second."""
        ...


class JsonLines:
    """Each event as a JSON object on a line."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def step(self, what: str) -> None:
        del what

    def event(self, logged: LoggedEvent) -> None:
        self._output.line(logged)

    def tick(self, elapsed_s: float) -> None:
        del elapsed_s


class PlainLines:
    """A line for each event; elections are counted, since 64 of them say nothing."""

    def __init__(self, tally: Tally) -> None:
        self._lines = EventLines(tally.label, lambda _: None, short=True)
        self._elections = 0

    def step(self, what: str) -> None:
        click.echo(f"--- {what}")

    def event(self, logged: LoggedEvent) -> None:
        if isinstance(logged.event, PartitionEvent):
            self._elections += 1
            return
        if self._elections:
            click.echo(f"       … {self._elections} partitions changed hands")
            self._elections = 0
        click.echo(self._lines.line(logged))

    def tick(self, elapsed_s: float) -> None:
        del elapsed_s


class LiveView:
    """The jobs as they stand, the latest events below them, and the time that is left."""

    def __init__(self, tally: Tally, seconds: float) -> None:
        from rich.live import Live

        self._tally = tally
        self._seconds = seconds
        self._lines = EventLines(tally.label, lambda _: None, short=True)
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._what = ""
        self._elapsed_s = 0.0
        self.live = Live(console=console(), get_renderable=self._picture, refresh_per_second=8)

    def step(self, what: str) -> None:
        self._what = what

    def event(self, logged: LoggedEvent) -> None:
        if not isinstance(logged.event, PartitionEvent):
            self._latest.append(self._lines.line(logged))

    def tick(self, elapsed_s: float) -> None:
        self._elapsed_s = elapsed_s

    def _picture(self) -> "RenderableType":
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        done = min(self._elapsed_s, self._seconds)
        head = Text(
            f"horolog demo  {done:4.1f} of {self._seconds:g} s   {self._what}", style="bold"
        )
        bar = ProgressBar(total=self._seconds, completed=done, width=60)
        lines = [Text.from_ansi(line, no_wrap=True, overflow="ellipsis") for line in self._latest]
        log = Text(f"the log, {self._tally.events} events", style="dim")
        return Group(head, bar, account_table(self._tally.accounts()), log, *lines)


@contextmanager
def chosen_view(output: Output, tally: Tally, seconds: float) -> "Generator[View]":
    """The view that fits where the output goes."""
    if output.as_json:
        yield JsonLines(output)
    elif not console().is_terminal:
        yield PlainLines(tally)
    else:
        view = LiveView(tally, seconds)
        with view.live:
            yield view


def account_table(accounts: list[JobAccount]) -> "Table":
    """What became of each job."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in ("job", "schedule", "status", "runs", "attempts", "outcome"):
        table.add_column(column, overflow="fold", no_wrap=column == "job")
    for account in accounts:
        good = not account.dead
        table.add_row(
            account.label,
            schedule_text(_short(account)),
            account.job.status,
            text(account.occurrences),
            text(account.attempts),
            Text(account.outcome, style="green" if good and account.succeeded else ""),
        )
    return table


def _short(account: JobAccount) -> dict[str, object]:
    """The schedule without its window: a demo's table has to fit."""
    schedule = account.job.definition.schedule
    return {name: value for name, value in schedule.items() if name not in ("start", "end")}
