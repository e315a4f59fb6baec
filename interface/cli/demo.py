"""`horolog demo`: see the system work, without anything installed but this package.

Its servers are embedded and live in a temporary directory, unless a home or URLs are named; its
jobs are in a namespace of their own, which holds nothing else.
"""

import secrets
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, console

if TYPE_CHECKING:
    from horolog.application.verify import Report
    from horolog.interface.demo.program import Told
    from horolog.interface.settings import Settings


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(3, 3600),
    default=20.0,
    show_default=True,
    metavar="N",
    help="How long jobs are watched, after the set-up.",
)
@at_a_place
def demo(place: Place, output: Output, seconds: float) -> int:
    """Watch jobs of every kind being registered, claimed, attempted and finished.

    Ends with the log's own account of what happened, checked by `verify`. With --json each event is
    a line, and the last line is the summary. Exits 1 if something is not as it should be.
    """
    from horolog.interface.demo.program import refuse_used, run_demo
    from horolog.interface.demo.tally import Tally
    from horolog.interface.demo.views import chosen_view
    from horolog.interface.processes.keeper import temporary_folder
    from horolog.interface.scheduler import Scheduler
    from horolog.interface.verification import verify_log

    # A CI system that has had enough sends SIGTERM: what was started is stopped all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        settings = stack.enter_context(_servers(place, output, folder))
        scheduler = stack.enter_context(Scheduler(settings=settings))
        refuse_used(scheduler, settings.namespace)
        tally = Tally()
        with chosen_view(output, tally, seconds) as view:
            told = run_demo(settings, scheduler, seconds, folder, view, tally)
        with output.progress("verifying the log") as advance:
            report = verify_log(settings, progress=advance)
    _show(output, told, report)
    return REFUSED if told.complaints or not report.ok else DONE


@contextmanager
def _servers(place: Place, output: Output, folder: Path) -> "Generator[Settings]":
    """The servers to use, running and migrated, and the namespace to use on them."""
    from horolog.interface.processes.serving import served
    from horolog.interface.settings import DEFAULT_HOME, DEFAULT_NAMESPACE

    settings = place.settings()
    if settings.home == Path(DEFAULT_HOME):
        settings = replace(settings, home=folder / "home")
    if settings.namespace == DEFAULT_NAMESPACE:
        settings = replace(settings, namespace=f"demo_{secrets.token_hex(4)}")
    output.say("starting Postgres and NATS …")
    with served(settings) as running:
        yield running


def _show(output: Output, told: "Told", report: "Report") -> None:
    """The log's account of each job, the verdict, and, as the last line, the summary."""
    from horolog.interface.demo.program import summed_up
    from horolog.interface.demo.views import account_table

    summary = summed_up(told, report)
    if output.as_json:
        output.line(summary)
        return
    click.echo("\nWhat the log says, folded from its first event:\n")
    console().print(account_table(told.tally.accounts()))
    click.echo()
    for problem in [*told.complaints, *(str(one) for one in report.violations)]:
        click.echo(f"{click.style('✗', fg='red')} {problem}")
    words = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in summary.items())
    click.echo(click.style(words, fg="red" if told.complaints or not report.ok else "green"))
