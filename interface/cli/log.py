"""`horolog log`: the events of all streams, in the one order that they have."""

from itertools import islice

import click

from horolog.interface.cli.event_listing import show_events
from horolog.interface.cli.export import Files, exportable, pages
from horolog.interface.cli.place import Place, at_a_place, reveal_option
from horolog.interface.cli.rendering import Output

LIMIT = 1_000
"""At most so many events without --follow, unless told otherwise."""

TAIL = 20
"""Positions before the present at which --follow begins by itself."""


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Wait for more, until Ctrl-C.")
@click.option("--after", type=int, metavar="N", help="Go on after this position.")
@click.option(
    "--topic", "topics", multiple=True, metavar="T",
    help="Only these: job.registered.1, or a beginning such as occurrence; repeatable.",
)  # fmt: skip
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N",
    help="At most so many.  [default: 1000; with --follow and files no limit]",
)  # fmt: skip
@exportable
@reveal_option
@at_a_place
def log(
    place: Place,
    output: Output,
    follow: bool,
    after: int | None,
    topics: tuple[str, ...],
    limit: int | None,
    files: Files,
) -> None:
    """The events, oldest first; with --follow the latest and then each as it comes.

    --follow --after 0 begins with the first event. A round of elections is one line, unless topics
    are named. With --json each line is one object, one for each event.
    """
    from horolog.application.answers.logged_event import LoggedEvent

    if files and follow:
        raise click.UsageError("--follow has no end: a file takes what is there now")
    with place.scheduler() as scheduler:
        if files:
            found = pages(
                lambda behind, size: scheduler.log(after=behind, topics=topics, limit=size),
                lambda event: event.position,
                after or 0,
                limit,
            )
            files.write(output, found, LoggedEvent)
            return
        if follow:
            begin = max(0, scheduler.position() - TAIL) if after is None else after
            events = islice(scheduler.follow(begin, topics=topics), limit)
        else:
            events = scheduler.log(
                after=after or 0, topics=topics, limit=LIMIT if limit is None else limit
            )
        show_events(output, scheduler, events, singly=bool(topics), endless=follow)
