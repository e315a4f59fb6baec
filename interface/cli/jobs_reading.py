"""The commands that look at jobs: show, list, upcoming, changes, history."""

from typing import Any

import click

from horolog.interface.cli.completing import job_argument
from horolog.interface.cli.event_listing import show_events
from horolog.interface.cli.export import Files, exportable, pages, some_or_all
from horolog.interface.cli.job_view import show_job
from horolog.interface.cli.listing import SHOWN, Table, list_out
from horolog.interface.cli.place import Place, at_a_place, reveal_option
from horolog.interface.cli.rendering import Output, on_one_line, text
from horolog.interface.cli.schedule_difference import show_month
from horolog.interface.cli.schedule_options import aware_instant
from horolog.interface.cli.schedule_text import schedule_text
from horolog.interface.cli.watch import watchable

EVENTS_SHOWN = 1_000
"""Of changes and of events, unless told otherwise."""


@click.command()
@job_argument
@click.option("--as-of", metavar="T", help="As it was at that instant.")
@reveal_option
@at_a_place
def show(place: Place, output: Output, job: str, as_of: str | None) -> None:
    """Show a job as it is now, or was at an instant."""
    moment = None if as_of is None else aware_instant("--as-of", as_of)
    with place.scheduler() as scheduler:
        show_job(output, scheduler.job(job, as_of=moment))


@click.command("list")
@watchable
@click.option("--status", type=click.Choice(["active", "paused", "completed", "cancelled"]))
@click.option("--name", metavar="NAME", help="Jobs of this handler.")
@click.option("--label", metavar="K[=V]", help="Jobs with this label.")
@click.option("--as-of", metavar="T", help="As they were at that instant.")
@click.option("--after", metavar="ID", help="Go on after this job.")
@some_or_all(SHOWN)
@exportable
@at_a_place
def listing(
    place: Place,
    output: Output,
    status: str | None,
    name: str | None,
    label: str | None,
    as_of: str | None,
    after: str | None,
    limit: int | None,
    files: Files,
) -> None:
    """List jobs, in the order of their ids."""
    from horolog.application.answers.job import Job

    moment = None if as_of is None else aware_instant("--as-of", as_of)
    table = Table[Job](
        ["id", "name", "key", "status", "next run", "schedule"],
        lambda one: (
            str(one.id), one.name, one.key, one.status, one.next_run,
            schedule_text(one.schedule.to_json()),
        ),
        empty="no jobs: `horolog job register echo --every 2` makes one",
    )  # fmt: skip
    with place.scheduler() as scheduler:

        def page(behind: Any, size: int) -> list[Job]:
            return scheduler.jobs(
                status=status,  # pyright: ignore[reportArgumentType] - a choice of the option
                name=name,
                label=label,
                as_of=moment,
                after=behind,
                limit=size,
            )

        list_out(output, files, Job, page, table, after=after, limit=limit)


@click.command()
@watchable
@job_argument
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=10, show_default=True)
@click.option("--month", is_flag=True, help="A picture of the first month, by day and hour.")
@at_a_place
def upcoming(place: Place, output: Output, job: str, count: int, month: bool) -> None:
    """The next fire times of a job, with their local times and what a clock change does."""
    from horolog.domain.due_fires import due_at

    with place.scheduler() as scheduler:
        found = scheduler.job(job)
        fires = scheduler.upcoming(found.id, count)
    if output.as_json:
        output.document(fires)
        return
    columns, jittered = ["instant (UTC)", "local", "note"], found.schedule.jitter > 0
    output.table(
        [*columns, "due with jitter"] if jittered else columns,
        [
            (fire.at, fire.local, fire.note)
            + ((due_at(found.schedule, found.id, fire.at),) if jittered else ())
            for fire in fires
        ],
        empty="no fire time ahead",
        whole=("instant (UTC)", "local"),
    )
    if month:
        show_month(found.schedule, fires)


@click.command()
@job_argument
@click.option("--after", type=int, default=0, metavar="VERSION", help="Go on after this version.")
@some_or_all(EVENTS_SHOWN)
@exportable
@reveal_option
@at_a_place
def changes(
    place: Place, output: Output, job: str, after: int, limit: int | None, files: Files
) -> None:
    """Who changed a job: each field from which value to which, when and why."""
    from horolog.application.answers.change import Change

    with place.scheduler() as scheduler:
        if files:
            found = pages(
                lambda behind, size: scheduler.changes(job, after=behind, limit=size),
                lambda change: change.version,
                after,
                limit,
            )
            files.write(output, found, Change)
            return
        found = scheduler.changes(job, after=after, limit=limit or EVENTS_SHOWN)
    if output.as_json:
        output.document(found)
        return
    for change in found:
        why = f", because {change.reason!r}" if change.reason else ""
        what = click.style(change.what.replace("_", " "), bold=True)
        who = f"by {on_one_line(change.actor)}{why} (version {change.version})"
        click.echo(f"{text(change.at)}  {what} {who}")
        for field in change.fields:
            before = "" if field.before is None else f"{text(field.before)} → "
            if before or field.after not in (None, [], ""):
                click.echo(on_one_line(f"    {field.field}: {before}{text(field.after)}"))


@click.command()
@job_argument
@click.option("--after", type=int, default=0, metavar="VERSION", help="Go on after this version.")
@some_or_all(EVENTS_SHOWN)
@exportable
@reveal_option
@at_a_place
def history(
    place: Place, output: Output, job: str, after: int, limit: int | None, files: Files
) -> None:
    """What happened to a job: who changed it, when and why. Its runs are `occurrence list`."""
    from horolog.application.answers.logged_event import LoggedEvent

    with place.scheduler() as scheduler:
        identity = scheduler.job(job).id
        if files:
            found = pages(
                lambda behind, size: scheduler.history(identity, after=behind, limit=size),
                lambda event: event.version,
                after,
                limit,
            )
            files.write(output, found, LoggedEvent)
            return
        found = scheduler.history(identity, after=after, limit=limit or EVENTS_SHOWN)
        show_events(output, scheduler, found)
