"""A group of commands whose modules are imported when one is called, and not for ``--help``.

`horolog --help` has to answer at once; importing every command would import both drivers, the
servers and rich. So the group knows each command's place and its one line of help, in sections.
Without this the help would be the slowest command.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import NamedTuple, cast

import click


class Lazy(NamedTuple):
    """Where a command is (``module:attribute``), and what it does in one line."""

    place: str
    help: str


class LazyGroup(click.Group):
    """``sections``: a title for each, and its commands by name, in the order of the help.

    ``aliases`` are other names of commands, which the help does not show.
    """

    def __init__(
        self,
        *,
        sections: Mapping[str, Mapping[str, Lazy]],
        aliases: Mapping[str, str] | None = None,
        **attributes: object,
    ) -> None:
        super().__init__(**attributes)  # pyright: ignore[reportArgumentType]
        self.sections = sections
        self._aliases = aliases or {}
        self._places = {name: lazy for part in sections.values() for name, lazy in part.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        lazy = self._places.get(self._aliases.get(cmd_name, cmd_name))
        if lazy is None:
            return None
        module, _, attribute = lazy.place.partition(":")
        return cast("click.Command", getattr(import_module(module), attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        refuse_unknown(self, ctx, args)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, lazy.help) for name, lazy in commands.items()])


class NamedGroup(click.Group):
    """A group that names the nearest of its commands where an unknown one is asked for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        refuse_unknown(self, ctx, args)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


def refuse_unknown(group: click.Group, ctx: click.Context, args: list[str]) -> None:
    """Raises a usage error with the nearest names, unless ``args`` begins with a command."""
    name = args[0]
    if ctx.resilient_parsing or name.startswith("-") or group.get_command(ctx, name) is not None:
        return
    known = group.list_commands(ctx)
    near = get_close_matches(name, known, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise click.UsageError(f"no such command {name!r}: {hint}", ctx)
