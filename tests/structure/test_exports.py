"""Every command that lists what grows gives all of it as JSON, CSV and Parquet."""

from collections.abc import Iterator

import click
import pytest

from horolog.interface.cli.main import cli

OF_A_FEW = {
    "schedule preview",
    "schedule diff",
    "job upcoming",
    "job register",
    "job reschedule",
    "dead-letters replay",
    "inbox list",
}
"""Fire times that are computed, what is done and not listed (``--limit`` is then of the schedule or
of what is done), and what an operator looks at and empties."""


def commands(
    command: click.Command, context: click.Context, name: str = ""
) -> Iterator[tuple[str, set[str]]]:
    """All commands, by the words that one types, with their options."""
    if not isinstance(command, click.Group):
        yield name, {option for each in command.params for option in each.opts}
        return
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        assert found is not None
        inner = click.Context(found, parent=context, info_name=word)
        yield from commands(found, inner, f"{name} {word}".strip())


OPTIONS = dict(commands(cli, click.Context(cli)))
LISTING = sorted(
    name for name, options in OPTIONS.items() if "--limit" in options and name not in OF_A_FEW
)


def test_every_command_speaks_json() -> None:
    assert [name for name, options in OPTIONS.items() if "--json" not in options] == []


@pytest.mark.parametrize("command", LISTING)
def test_a_listing_can_be_taken_away_as_a_file(command: str) -> None:
    assert {"--csv", "--parquet"} <= OPTIONS[command]


def test_the_listings_are_those_that_are_known() -> None:
    assert {"log", "job history", "occurrence list", "audit runs", "dead-letters list"} <= set(
        LISTING
    )
    assert OPTIONS.keys() >= OF_A_FEW
