"""`horolog occurrence`: the execution log, as people ask for it."""

from pathlib import Path
from typing import Any

import click

from horolog.interface.cli.completing import job_keys
from horolog.interface.cli.event_listing import show_events
from horolog.interface.cli.export import Files, exportable, pages, some_or_all
from horolog.interface.cli.job_view import job_id, show_occurrence
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.listing import SHOWN, Table, list_out
from horolog.interface.cli.place import Place, at_a_place, reveal_option
from horolog.interface.cli.rendering import Output, on_one_line, text
from horolog.interface.cli.schedule_options import aware_instant
from horolog.interface.cli.watch import watchable
from horolog.interface.identifiers import occurrence_uuid

STATES = (
    "scheduled", "claimed", "running", "stopping", "retrying", "succeeded", "dead", "skipped",
    "discarded",
)  # fmt: skip

from_archive = click.option(
    "--archive", type=click.Path(file_okay=False, exists=True, path_type=Path), metavar="DIR",
    help="Look here for what retention has taken out of the log.",
)  # fmt: skip


@click.group(cls=NamedGroup)
def occurrence() -> None:
    """The execution log: one entry for each firing of a job."""


@occurrence.command()
@click.argument("occurrence_id", metavar="ID")
@reveal_option
@at_a_place
def show(place: Place, output: Output, occurrence_id: str) -> None:
    """Show what became of one firing."""
    with place.scheduler() as scheduler:
        show_occurrence(output, scheduler.occurrence(occurrence_id))


@occurrence.command("list")
@watchable
@click.option("--job", metavar="JOB", shell_complete=job_keys, help="Of this job, an id or a key.")
@click.option("--state", type=click.Choice(STATES))
@click.option("--since", metavar="T", help="Fire times from then on.")
@click.option("--until", metavar="T", help="Fire times before then.")
@click.option("--newest-first", is_flag=True, help="In the reverse order.")
@click.option("--after", metavar="ID", help="Go on after this occurrence.")
@some_or_all(SHOWN)
@exportable
@reveal_option
@at_a_place
def listing(
    place: Place,
    output: Output,
    job: str | None,
    state: str | None,
    since: str | None,
    until: str | None,
    newest_first: bool,
    after: str | None,
    limit: int | None,
    files: Files,
) -> None:
    """List occurrences, in the order of their fire times."""
    from horolog.application.answers.occurrence import Occurrence

    begin = None if since is None else aware_instant("--since", since)
    end = None if until is None else aware_instant("--until", until)
    table = Table[Occurrence](
        ["id", "fire time", "state", "attempt", "ordered by", "finished", "error"],
        lambda one: (
            str(one.id), one.fire_time, one.state, one.attempt, one.kind, one.finished_at,
            one.error,
        ),
        empty="no occurrences",
        whole=("id", "fire time", "state"),
    )  # fmt: skip
    with place.scheduler() as scheduler:
        of_job = None if job is None else job_id(scheduler, job)

        def page(behind: Any, size: int) -> list[Occurrence]:
            return scheduler.occurrences(
                job_id=of_job,
                state=state,  # pyright: ignore[reportArgumentType] - a choice of the option
                since=begin,
                until=end,
                after=behind,
                limit=size,
                newest_first=newest_first,
            )

        list_out(output, files, Occurrence, page, table, after=after, limit=limit)


@occurrence.command()
@click.argument("occurrence_id", metavar="ID")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def cancel(place: Place, output: Output, occurrence_id: str, reason: str | None) -> None:
    """Cancel one run: it does not begin, or it is asked to stop. Its job goes on."""
    with place.scheduler() as scheduler:
        show_occurrence(output, scheduler.cancel_occurrence(occurrence_id, reason=reason))


@occurrence.command()
@click.argument("occurrence_id", metavar="ID")
@from_archive
@reveal_option
@at_a_place
def explain(place: Place, output: Output, occurrence_id: str, archive: Path | None) -> None:
    """Why it is what it is: from the job's registration over claims and attempts to the outcome."""
    with place.scheduler() as scheduler:
        story = scheduler.explain(occurrence_id, archive=archive)
    if output.as_json:
        output.document(story)
        return
    state = click.style(story.state, bold=True)
    source = "" if story.archive is None else f" (from the archive {story.archive})"
    click.echo(f"occurrence {story.occurrence_id} of {on_one_line(story.name)} is {state}{source}")
    for step in story.steps:
        since = "" if step.after_s is None else f"+{step.after_s:.3f} s"
        click.echo(
            f"{text(step.at)}  {click.style(f'{since:>12}', dim=True)}  {on_one_line(step.what)}"
        )
    if story.outlook:
        click.echo(on_one_line(story.outlook))


@occurrence.command()
@click.argument("occurrence_id", metavar="ID")
@click.option("--after", type=int, default=0, metavar="VERSION", help="Go on after this version.")
@some_or_all(1_000)
@exportable
@from_archive
@reveal_option
@at_a_place
def history(
    place: Place,
    output: Output,
    occurrence_id: str,
    after: int,
    limit: int | None,
    archive: Path | None,
    files: Files,
) -> None:
    """What happened to one firing, from its claim to its end."""
    from horolog.application.answers.logged_event import LoggedEvent

    with place.scheduler() as scheduler:
        identity = occurrence_uuid(occurrence_id)
        if files:
            events = pages(
                lambda behind, size: scheduler.history(
                    identity, after=behind, limit=size, archive=archive
                ),
                lambda event: event.version,
                after,
                limit,
            )
            files.write(output, events, LoggedEvent)
            return
        found = scheduler.history(identity, after=after, limit=limit or 1_000, archive=archive)
        if not found:
            scheduler.occurrence(identity)  # says so where there is none
        elif found[0].archive is not None and not output.as_json:
            output.say(f"from the archive {found[0].archive}:")
        show_events(output, scheduler, found)
