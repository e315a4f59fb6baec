"""Manual pages from the help of the commands: `make man`, and `man horolog-job-register`.

    python -m horolog.interface.cli.manual DIR

One page for each command, in the section 1, made from what `--help` is made from, so the two cannot
differ. The wheel has them in share/man/man1.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click

EXIT_STATUS = (
    ("0", "done"),
    ("1", "refused; one line on standard error says why"),
    ("2", "wrong usage"),
    ("3", "a service is away"),
)


def pages(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The name of each page (``horolog-job-list.1``) and its text, the command's own first."""
    context = click.Context(command, info_name=" ".join(path))
    yield f"{'-'.join(path)}.1", _page(command, context, path)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                yield from pages(found, (*path, name))


def _page(command: click.Command, context: click.Context, path: tuple[str, ...]) -> str:
    name = "-".join(path)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{_text(name.upper())}" "1" "" "horolog {version("horolog")}" "Horolog"',
        ".SH NAME",
        _text(f"{name} - {command.get_short_help_str(200).rstrip('.')}").replace(" - ", " \\- ", 1),
        ".SH SYNOPSIS",
        f".B {_text(' '.join(path))}",
        _text(usage),
        ".SH DESCRIPTION",
        *_paragraphs(command.help or ""),
    ]
    records = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        lines += [".SH OPTIONS", *_terms(records)]
    if isinstance(command, click.Group):
        named = [(one, command.get_command(context, one)) for one in command.list_commands(context)]
        shown = [
            (f"{name}-{one}(1)", found.get_short_help_str(200))
            for one, found in named
            if found is not None and not found.hidden
        ]
        lines += [".SH COMMANDS", *_terms(shown)]
    if command.epilog:
        lines += [".SH NOTES", *_paragraphs(command.epilog)]
    lines += [".SH EXIT STATUS", *_terms(EXIT_STATUS)]
    if len(path) > 1:
        lines += [".SH SEE ALSO", _text(f"{'-'.join(path[:-1])}(1)")]
    return "\n".join(lines) + "\n"


def _paragraphs(help_text: str) -> Iterator[str]:
    plain = help_text.replace("\b\n", "").strip()  # click's mark of a paragraph to leave as it is
    for number, paragraph in enumerate(re.split(r"\n\s*\n", plain)):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _terms(records: "list[tuple[str, str]] | tuple[tuple[str, str], ...]") -> Iterator[str]:
    for term, explained in records:
        yield from (".TP", f".B {_text(term)}", _text(" ".join(explained.split())) or "\\&")


def _text(plain: str) -> str:
    """As roff takes it: nothing in it commands the formatter."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main(directory: str) -> None:
    """Writes all pages into a directory, which then has nothing else of ours."""
    from horolog.interface.cli.main import cli

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("horolog*.1"):
        old.unlink()
    for name, text in pages(cli, ("horolog",)):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m horolog.interface.cli.manual DIR")
    main(sys.argv[1])
