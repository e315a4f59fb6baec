"""Listings: all of it as a file, or a page as JSON or as a table that says how to go on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from horolog.interface.cli.export import Files, pages
from horolog.interface.cli.rendering import Output

T = TypeVar("T")


class _HasId(Protocol):
    @property
    def id(self) -> object: ...


Identified = TypeVar("Identified", bound=_HasId)

SHOWN: Final = 100
"""Rows of a listing that is not exported, unless --limit says otherwise."""


@dataclass(frozen=True)
class Table(Generic[T]):
    """How answers of one class stand in a table; ``whole``: the columns that are never folded."""

    columns: Sequence[str]
    row: Callable[[T], Sequence[object]]
    empty: str
    whole: Sequence[str] = ("id",)

    def show(self, output: Output, found: Sequence[T]) -> None:
        """The answers as they are; there are no more of them."""
        if output.as_json:
            output.document(found)
        else:
            rows = [self.row(one) for one in found]
            output.table(self.columns, rows, empty=self.empty, whole=self.whole)

    def show_page(self, output: Output, found: Sequence[Any], limit: int | None) -> None:
        """A page of answers with ids; a full one (``limit``, or ``SHOWN``) says how to go on."""
        self.show(output, found)
        if not output.as_json and len(found) == (limit or SHOWN):
            output.say(f"more: --after {found[-1].id}")


def list_out(
    output: Output,
    files: Files,
    kind: type[Identified],
    page: Callable[[Any, int], Sequence[Identified]],
    table: Table[Identified],
    *,
    after: str | None,
    limit: int | None,
) -> None:
    """Lists answers that have ids: ``limit`` at most, else all in a file and ``SHOWN`` elsewhere.

    ``page`` gives so many that come after an id.
    """
    bound = limit or (None if files else SHOWN)
    found = pages(page, lambda one: one.id, after, bound)
    if files:
        files.write(output, found, kind)
    else:
        table.show_page(output, list(found), limit)
