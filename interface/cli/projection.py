"""`horolog projection`: the read models against the log, built anew from it, and back; and users'
own projections."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.own_projection import run
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, text
from horolog.interface.cli.watch import watchable

if TYPE_CHECKING:
    from horolog.application.rebuild import Difference, Outcome, Progress, Run
    from horolog.interface.projections import Projections

MOST_SHOWN = 50
SAID_EVERY_S = 2.0


@click.group(cls=NamedGroup)
def projection() -> None:
    """Verify the read models against the log, rebuild them from it, roll back.

    The read models are next_runs, jobs, executions, dead_letters and partitions. Everything here
    goes on beside a running system: no append waits longer than some milliseconds. `run` is for
    projections of your own.
    """


@projection.command()
@watchable
@at_a_place
def status(place: Place, output: Output) -> int:
    """Show the read models, the last rebuilds, and what was passed over."""
    with _projections(place) as projections:
        found = projections.status()
    if output.as_json:
        output.document(found)
        return DONE
    output.say(
        f"the log is at position {found.position}; the fold has version {found.fold_version}"
    )
    output.table(
        ("projection", "rows (about)", "rebuilt at"),
        ((p.name, p.rows, p.rebuilt_at) for p in found.projections),
        empty="there are none",
        whole=("projection",),
    )
    if found.unfinished is not None:
        output.say(f"\n{_standing(found.unfinished, found.lag or 0)}")
    if found.can_roll_back:
        output.say("\nthe tables of before the last rebuild are kept: horolog projection rollback")
    for event in found.skipped:
        output.say(
            f"\npassed over: position {event.position} ({event.skipped_topic}) by {event.actor},"
            f" {event.reason or 'without a reason'}"
        )
    return DONE


@projection.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@at_a_place
def verify(place: Place, output: Output, names: tuple[str, ...]) -> int:
    """Compare read models with the log, row by row; exits 1 if there is a difference.

    Nothing is changed. What was built for the comparison is kept where there is a difference, and
    `rebuild` goes on from it.
    """
    with _projections(place) as projections, _watching(output) as watch:
        outcome = projections.verify(*names, watch=watch)
    _show(output, outcome)
    return DONE if outcome.ok else REFUSED


@projection.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--reason", help="Why, for the record.")
@click.option(
    "--skip", type=int, metavar="POSITION",
    help="Pass over the event at this position, which cannot be applied; this is kept in the log.",
)  # fmt: skip
@at_a_place
def rebuild(
    place: Place, output: Output, names: tuple[str, ...], reason: str | None, skip: int | None
) -> int:
    """Build read models anew from the log, while jobs keep firing, and put them to use.

    Interrupted, it goes on where it was. The tables of before are kept for `rollback`.
    """
    with _projections(place) as projections, _watching(output) as watch:
        outcome = projections.rebuild(*names, skip=skip, reason=reason, watch=watch)
    _show(output, outcome)
    return DONE


@projection.command()
@at_a_place
def rollback(place: Place, output: Output) -> int:
    """Put the tables to use again that the last rebuild took out of it, brought up to date."""
    with _projections(place) as projections, _watching(output) as watch:
        outcome = projections.roll_back(watch=watch)
    _show(output, outcome)
    return DONE


projection.add_command(run)


@contextmanager
def _projections(place: Place) -> "Generator[Projections]":
    from horolog.interface.projections import Projections

    with Projections(settings=place.settings()) as projections:
        yield projections


@contextmanager
def _watching(output: Output) -> "Generator[Callable[[Progress], None]]":
    """A line on stderr now and then, with the time left; nothing where it is over at once."""
    said = monotonic()

    def watch(progress: "Progress") -> None:
        nonlocal said
        if output.as_json or monotonic() - said < SAID_EVERY_S:
            return
        said = monotonic()
        left = "" if progress.left_s is None else f", {progress.left_s:,.0f} s left"
        click.echo(
            f"position {progress.position:,} of {progress.end:,},"
            f" {progress.events_per_s:,.0f} events/s{left}",
            err=True,
        )

    yield watch


def _standing(run: "Run", lag: int) -> str:
    if run.state == "stopped":
        return (
            f"a {run.purpose} has stopped, {lag} positions behind the log: {run.error}\n"
            "mend the event's reader and run it again, or pass over the event: --skip POSITION"
        )
    if run.state == "kept":
        return f"verify found {run.differences} differences: horolog projection rebuild"
    return (
        f"a {run.purpose} of {', '.join(run.projections)} is at position {run.position},"
        f" {lag} behind the log; it goes on when it is run again"
    )


def _show(output: Output, outcome: "Outcome") -> None:
    if output.as_json:
        output.document(outcome)
        return
    for difference in outcome.differences[:MOST_SHOWN]:
        click.echo(_line(difference))
    if outcome.difference_count > MOST_SHOWN:
        click.echo(f"  … and {outcome.difference_count - MOST_SHOWN} more (--json has them)")
    hold = f"the log lock was held for {outcome.longest_hold_s * 1e3:.0f} ms at most"
    click.echo(
        f"{outcome.events:,} events folded up to position {outcome.position:,}"
        f" in {outcome.seconds:g} s; {hold}"
    )
    names = ", ".join(outcome.projections)
    count = outcome.difference_count
    if outcome.purpose == "rollback":
        click.echo(f"in use again, brought up to date: {names}")
    elif outcome.exchanged:
        click.echo(f"rebuilt and in use: {names}; {count} rows were not what the log says")
    elif count:
        click.echo(click.style(f"{count} differences: horolog projection rebuild", fg="red"))
    else:
        click.echo(click.style(f"{names}: as the log says", fg="green"))


def _line(difference: "Difference") -> str:
    head = f"{click.style('✗', fg='red')} {difference.projection} {difference.id}"
    if difference.in_use is None:
        return f"{head} is missing"
    if difference.rebuilt is None:
        return f"{head} should not be there"
    changes = ", ".join(
        f"{name} is {text(value)} and should be {text(difference.rebuilt[name])}"
        for name, value in difference.in_use.items()
    )
    return f"{head}: {changes}"
