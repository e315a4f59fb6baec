"""`--watch`: a listing that is shown anew until Ctrl-C, for somebody who looks at it."""

import sys
from collections.abc import Callable
from functools import wraps
from time import sleep
from typing import Any, ParamSpec, TypeVar

import click

P = ParamSpec("P")
R = TypeVar("R")

_option = click.option(
    "--watch", type=click.FloatRange(0.1), metavar="S",
    help="Show it anew every S seconds, until Ctrl-C.",
)  # fmt: skip


def watchable(function: Callable[..., R]) -> Callable[..., R | None]:
    """Adds the option, to a command that is decorated with ``at_a_place`` beneath it.

    On a terminal each look takes the place of the one before; elsewhere they follow each other. A
    service that is away is told and looked for again: whoever watches an outage sees its end.
    """

    @wraps(function)
    def call(*arguments: Any, watch: float | None, **options: Any) -> R | None:
        if watch is None:
            return function(*arguments, **options)
        if options.get("as_json"):
            raise click.UsageError(
                "--watch shows to people: leave out --json", click.get_current_context()
            )
        try:
            while True:
                _look(lambda: function(*arguments, **options), watch)
                sleep(watch)
        except KeyboardInterrupt:
            return None

    return _option(call)


def _look(function: Callable[[], object], every_s: float) -> None:
    from horolog.domain.errors import QueueUnavailable, StoreUnavailable

    if sys.stdout.isatty():
        click.clear()
        click.secho(f"every {every_s:g} s; Ctrl-C ends", dim=True)
    try:
        function()
    except (StoreUnavailable, QueueUnavailable) as error:
        click.echo(f"away: {error}")
    sys.stdout.flush()
