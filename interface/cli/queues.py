"""`horolog queue`: how many runs of a queue at once, how many a second."""

import click

from horolog.interface.cli.completing import queue_names
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.watch import watchable


@click.group(cls=NamedGroup)
def queue() -> None:
    """Limit queues, over all scanners and workers, and list the limits."""


@queue.command()
@click.argument("name", metavar="QUEUE", shell_complete=queue_names)
@click.argument("most", metavar="[N]", type=int, required=False)
@click.option("--rate", type=float, metavar="R", help="At most so many begin a second.")
@click.option("--none", "remove", is_flag=True, help="Take the limits away.")
@at_a_place
def limit(
    place: Place,
    output: Output,
    name: str,
    most: int | None,
    rate: float | None,
    remove: bool,
) -> None:
    """Let at most N runs of QUEUE be claimed or run at once.

    What is stated replaces both limits. For example: horolog queue limit mail 20 --rate 5
    """
    if remove == (most is not None or rate is not None):
        raise click.UsageError("give N, --rate or both; or --none to take the limits away")
    with place.scheduler() as scheduler:
        scheduler.limit_queue(name, limit=most, rate=rate)
        found = [one for one in scheduler.limited_queues() if one.queue == name]
    if output.as_json:
        output.document(found[0] if found else {"queue": name, "limit": None, "rate": None})
    else:
        output.say(f"queue {name}: {_words(most, rate)}")


@queue.command("list")
@watchable
@at_a_place
def listing(place: Place, output: Output) -> None:
    """List the queues that have limits, what is in use, and what waits."""
    with place.scheduler() as scheduler:
        found = scheduler.limited_queues()
    if output.as_json:
        output.document(found)
        return
    output.table(
        ["queue", "at once", "a second", "in use", "waiting"],
        [(one.queue, one.limit, one.rate, one.taken, one.waiting) for one in found],
        empty="no queue has a limit",
    )


def _words(most: int | None, rate: float | None) -> str:
    parts = [] if most is None else [f"at most {most} at once"]
    if rate is not None:
        parts.append(f"at most {rate:g} a second")
    return ", ".join(parts) or "no limits"
