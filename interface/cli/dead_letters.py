"""`horolog dead-letters`: what nobody will try again by themselves, and what a person decides."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.export import Files, exportable, some_or_all
from horolog.interface.cli.job_view import show_occurrence
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.listing import SHOWN, Table, list_out
from horolog.interface.cli.place import Place, at_a_place, reveal_option
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.watch import watchable

if TYPE_CHECKING:
    from uuid import UUID

    from horolog.application.answers.dead_letter import DeadLetter


@click.group(cls=NamedGroup)
def dead_letters() -> None:
    """Occurrences that nobody will retry: list them, replay them, discard them."""


@dead_letters.command("list")
@watchable
@click.option("--owner", metavar="WHO", help="Only this owner's.")
@click.option("--name", metavar="NAME", help="Only of this handler.")
@click.option("--after", metavar="ID", help="Go on after this one.")
@some_or_all(SHOWN)
@exportable
@reveal_option
@at_a_place
def listing(
    place: Place,
    output: Output,
    owner: str | None,
    name: str | None,
    after: str | None,
    limit: int | None,
    files: Files,
) -> None:
    """List dead letters with their cause and owner."""
    from horolog.application.answers.dead_letter import DeadLetter

    table = Table[DeadLetter](
        ["id", "name", "owner", "since", "attempt", "cause", "error"],
        lambda one: (
            str(one.id), one.name, one.owner, one.since, one.attempt, one.cause, one.error,
        ),
        empty="no dead letters",
    )  # fmt: skip
    with place.scheduler() as scheduler:

        def page(behind: "UUID | str | None", size: int) -> "Sequence[DeadLetter]":
            return scheduler.dead_letters(owner=owner, name=name, after=behind, limit=size)

        list_out(output, files, DeadLetter, page, table, after=after, limit=limit)


@dead_letters.command()
@click.argument("occurrence_id", metavar="ID", required=False)
@click.option("--all", "everything", is_flag=True, help="All of --owner and --name.")
@click.option("--owner", metavar="WHO", help="With --all: only this owner's.")
@click.option("--name", metavar="NAME", help="With --all: only of this handler.")
@click.option("--limit", type=int, metavar="N", help="With --all: at most so many.")
@click.option("--rate", type=float, metavar="N", help="With --all: so many begin each second.")
@click.option("--dry-run", is_flag=True, help="With --all: only count them.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def replay(
    place: Place,
    output: Output,
    occurrence_id: str | None,
    everything: bool,
    owner: str | None,
    name: str | None,
    limit: int | None,
    rate: float | None,
    dry_run: bool,
    reason: str | None,
) -> None:
    """Try a dead letter again under its own key, with a fresh budget of attempts."""
    if (occurrence_id is None) == (not everything):
        raise click.UsageError("name one ID, or --all", click.get_current_context())
    with place.scheduler() as scheduler:
        if occurrence_id is not None:
            show_occurrence(output, scheduler.replay(occurrence_id, reason=reason))
            return
        with output.progress("replaying"):
            count = scheduler.replay_many(
                owner=owner, name=name, limit=limit, rate=rate, dry_run=dry_run, reason=reason
            )
    if output.as_json:
        output.document({"would_replay" if dry_run else "replayed": count})
    else:
        output.say(f"{count} {'would be replayed' if dry_run else 'replayed'}")


@dead_letters.command()
@click.argument("occurrence_id", metavar="ID")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def discard(place: Place, output: Output, occurrence_id: str, reason: str | None) -> None:
    """Close a dead letter: it needs no further try."""
    with place.scheduler() as scheduler:
        show_occurrence(output, scheduler.discard(occurrence_id, reason=reason))
