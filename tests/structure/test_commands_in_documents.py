"""Every `horolog …` that a document shows is a command there is, with options that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from horolog.interface.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])
SHOWN = re.compile(r"`horolog ([^`]+)`|^ *(?:[$] |.*[|] )?horolog ([^`\n]+)$", re.MULTILINE)
AFTER_IT = re.compile(r" *(?:\s#|[|>;]|&&|\\$|…|\) ).*")


def shown_commands(text: str) -> Iterator[str]:
    for inline, line in SHOWN.findall(text):
        words = (inline or line).replace("\n", " ")
        yield AFTER_IT.sub("", re.sub(r"[][]", " ", words)).strip()


def parse(words: list[str]) -> None:
    """Raises ``UsageError`` for a command or an option that there is not."""
    command: click.Command = cli
    context = click.Context(cli, info_name="horolog")
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:
            raise click.UsageError(f"no command {rest[0]!r}")
        command, rest = found, rest[1:]
        context = click.Context(command, info_name=words[0], parent=context)
    if not isinstance(command, click.Group):
        command.make_parser(context).parse_args(rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_document_are_there(page: Path) -> None:
    wrong: list[str] = []
    for shown in shown_commands(page.read_text()):
        try:
            parse(shlex.split(shown))
        except click.BadOptionUsage:
            continue  # an option that is only named
        except (click.UsageError, ValueError) as error:
            message = error.format_message() if isinstance(error, click.UsageError) else error
            wrong.append(f"horolog {shown}: {message}")
    assert wrong == []


def test_the_documents_show_commands() -> None:
    assert sum(len(list(shown_commands(page.read_text()))) for page in PAGES) > 150
