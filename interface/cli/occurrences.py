"""`horolog occurrence`: the execution log, as people ask for it."""

import click

from horolog.interface.cli.event_listing import show_events
from horolog.interface.cli.job_view import job_id, show_occurrence
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.schedule_options import aware_instant

STATES = (
    "scheduled", "claimed", "running", "stopping", "retrying", "succeeded", "dead", "skipped",
    "discarded",
)  # fmt: skip


@click.group(cls=NamedGroup)
def occurrence() -> None:
    """The execution log: one entry for each firing of a job."""


@occurrence.command()
@click.argument("occurrence_id", metavar="ID")
@at_a_place
def show(place: Place, output: Output, occurrence_id: str) -> None:
    """Show what became of one firing."""
    with place.scheduler() as scheduler:
        show_occurrence(output, scheduler.occurrence(occurrence_id))


@occurrence.command("list")
@click.option("--job", metavar="JOB", help="Of this job, an id or a key.")
@click.option("--state", type=click.Choice(STATES))
@click.option("--since", metavar="T", help="Fire times from then on.")
@click.option("--until", metavar="T", help="Fire times before then.")
@click.option("--newest-first", is_flag=True, help="In the reverse order.")
@click.option("--after", metavar="ID", help="Go on after this occurrence.")
@click.option("--limit", type=int, default=100, show_default=True)
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
    limit: int,
) -> None:
    """List occurrences, in the order of their fire times."""
    with place.scheduler() as scheduler:
        found = list(
            scheduler.occurrences(
                job_id=None if job is None else job_id(scheduler, job),
                state=state,  # pyright: ignore[reportArgumentType] - a choice of the option
                since=None if since is None else aware_instant("--since", since),
                until=None if until is None else aware_instant("--until", until),
                after=after,
                limit=limit,
                newest_first=newest_first,
            )
        )
    if output.as_json:
        output.document(found)
        return
    output.table(
        ["id", "fire time", "state", "attempt", "ordered by", "finished", "error"],
        [
            (str(one.id), one.fire_time, one.state, one.attempt, one.kind, one.finished_at,
             one.error)
            for one in found
        ],
        empty="no occurrences",
        whole=("id", "fire time", "state"),
    )  # fmt: skip
    if len(found) == limit:
        output.say(f"more: --after {found[-1].id}")


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
@click.option("--after", type=int, default=0, metavar="VERSION", help="Go on after this version.")
@click.option("--limit", type=int, default=1000, show_default=True)
@at_a_place
def history(place: Place, output: Output, occurrence_id: str, after: int, limit: int) -> None:
    """What happened to one firing, from its claim to its end."""
    with place.scheduler() as scheduler:
        identity = scheduler.occurrence(occurrence_id).id
        show_events(output, scheduler, scheduler.history(identity, after=after, limit=limit))
