"""`horolog dev`: everything that one machine needs to develop against, in one terminal.

Postgres and NATS run in HOROLOG_HOME and keep their data there; what is stated by URL is used
instead. The scanner, the worker and the web page (where its extra is installed) are processes of
their own. Ctrl-C or SIGTERM drains both, then
the servers of the home stop, unless another `horolog dev` uses them: the last one stops them.
"""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.main import DONE
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from horolog.interface.settings import Settings

SAMPLES = "horolog.interface.samples:worker"

LOOK_S = 0.25
"""How often the children are looked at: one that ended by itself ends everything."""

DRAIN_S = 40.0
"""Longer than the worker's own grace, after which it gives back what still runs."""


@click.command()
@click.argument("worker", required=False, metavar="[MODULE:WORKER]")
@click.option("--web-port", type=int, metavar="N", help="Of the page.  [default: 8480 or so]")
@click.option("--no-web", is_flag=True, help="Without the page.")
@at_a_place
def dev(
    place: Place, output: Output, worker: str | None, web_port: int | None, no_web: bool
) -> int:
    """Servers that keep their data, a scanner, a worker and the web page, until Ctrl-C.

    MODULE:WORKER is your worker, such as myapp.jobs:worker. Without it the sample handlers run:
    ping, echo, sleep, flaky, poison, hopeless, busy, patient.
    """
    from horolog.interface.cli.web import has_the_extra
    from horolog.interface.cli.web_port import free_port
    from horolog.interface.processes.children import Child, stop_all
    from horolog.interface.processes.serving import served

    settings = place.settings()
    with _told_to_stop() as stopping, served(settings) as running:
        children = [
            Child.start("scanner", ["scanner"], running),
            Child.start("worker", ["worker", worker or SAMPLES], running),
        ]
        port: int | None = None
        several = running.log is None and running.place.logs > 1  # the page is of one log
        if not no_web and not several and has_the_extra():
            port = free_port(web_port)
            children.append(Child.start("web page", ["web", "--port", str(port)], running))
        try:
            _announce(output, running, worker, port)
            while not stopping.wait(LOOK_S):
                for child in children:
                    child.check()
        finally:
            output.say("stopping: what runs may finish …")
            stop_all(children, DRAIN_S)
    output.say("stopped; the data stay in " + str(settings.home))
    return DONE


@contextmanager
def _told_to_stop() -> "Generator[threading.Event]":
    """An event that Ctrl-C and SIGTERM set; a second one of them ends this process at once."""
    stopping = threading.Event()

    def stop(number: int, frame: object) -> None:
        del frame
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _announce(output: Output, settings: "Settings", worker: str | None, port: int | None) -> None:
    page = None if port is None else f"http://127.0.0.1:{port}/"
    if output.as_json:
        place = {"home": settings.home, "namespace": settings.namespace}
        output.line({"ready": True, **place, "page": page})
        return
    click.echo(f"Postgres and NATS run in {settings.home}, namespace {settings.namespace}")
    if worker is None:
        click.echo("no worker named: the samples run (ping, echo, sleep, flaky, poison, …)")
    if page is not None:
        click.echo(f"the page is at {page}")
    click.echo("in a second terminal:")
    if worker is None:
        click.echo("  horolog job register ping --every 2")
    else:
        click.echo("  horolog job register HANDLER --every 60    (one of your worker's)")
    click.echo("  horolog log --follow")
    click.echo("Ctrl-C stops")
