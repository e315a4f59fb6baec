"""`horolog projection run`: a projection of the user's, followed by one process."""

import signal
from threading import Event

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.processes import begin, log_options
from horolog.interface.cli.rendering import Output


@click.command()
@click.argument("projection", metavar="MODULE:PROJECTION")
@click.option("--once", is_flag=True, help="End when it is level with the log.")
@click.option("--reset", is_flag=True, help="Tear it down first, and begin again.")
@click.option(
    "--skip", type=int, multiple=True, metavar="POSITION",
    help="Pass over the event at this position; repeatable.",
)  # fmt: skip
@log_options
@at_a_place
def run(
    place: Place,
    output: Output,
    projection: str,
    once: bool,
    reset: bool,
    skip: tuple[int, ...],
    log_level: str,
    log_format: str | None,
    until_stdin_closes: bool,
) -> None:
    """Run your own projection, such as myapp.reports:Spending, each event exactly once.

    One process at a time does; others stand by and take over. SIGTERM ends it.
    """
    from horolog.interface.projecting import load_projection, reset_projection, run_projection

    loaded = load_projection(projection)
    begin(output, log_level, log_format, until_stdin_closes)
    stop = Event()

    def stopping(number: int, frame: object) -> None:
        del number, frame
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopping)
    with place.scheduler() as scheduler:
        if reset:
            reset_projection(loaded, scheduler)
        until = scheduler.position() if once else None
        applied = run_projection(loaded, scheduler, stop=stop, until=until, skip=skip)
    if output.as_json:
        output.document({"projection": loaded.name, "applied": applied})
    else:
        output.say(f"{loaded.name}: {applied} events applied")
