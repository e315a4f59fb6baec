"""A list of events on the way out: a line each, or a JSON object a line."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from uuid import UUID

    from horolog.application.answers.logged_event import LoggedEvent
    from horolog.interface.cli.event_lines import EventLines
    from horolog.interface.scheduler import Scheduler


def show_events(
    output: Output,
    scheduler: "Scheduler",
    events: "Iterable[LoggedEvent]",
    *,
    singly: bool = True,
    endless: bool = False,
) -> None:
    """Writes each event as soon as it comes, so that a list without an end is a stream.

    Unless ``singly``, rounds of elections are one line, where it is written for people.
    """
    if output.as_json:
        for event in events:
            output.line(event)
        return
    from horolog.interface.cli.election_rounds import rounds

    lines = event_lines(scheduler)
    if singly:
        for event in events:
            click.echo(lines.line(event))
        return
    for together in rounds(events, scheduler.position if endless else None):
        click.echo(lines.round(together))


def event_lines(scheduler: "Scheduler") -> "EventLines":
    """Lines that know the names of the jobs in this scheduler's log."""
    from horolog.domain.errors import UnknownJob, UnknownOccurrence
    from horolog.interface.cli.event_lines import EventLines

    def name_of(job_id: "UUID") -> str | None:
        try:
            job = scheduler.job(job_id)
        except UnknownJob:
            return None
        return job.key or job.name

    def job_of(occurrence_id: "UUID") -> "UUID | None":
        try:
            return scheduler.occurrence(occurrence_id).job_id
        except UnknownOccurrence:
            return None

    return EventLines(name_of, job_of)
