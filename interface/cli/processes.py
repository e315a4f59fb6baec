"""`horolog migrate`, `scanner` and `worker`: one process each, as production runs them.

SIGTERM and Ctrl-C drain: the scanner publishes what it has claimed and releases its partitions, the
worker finishes what it runs within its grace. A second signal ends at once.
"""

import logging
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    import asyncio

    from horolog.application.scanner.settings import ScannerSettings
    from horolog.interface.processes.monitor import Monitor
    from horolog.interface.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


@click.command()
@click.option("--partitions", type=int, metavar="N", help="Of a new namespace.  [default: 64]")
@click.option(
    "--grant-to", multiple=True, metavar="ROLE",
    help="A Postgres role that gets what a service needs and no more; repeatable.",
)  # fmt: skip
@click.option(
    "--regardless", is_flag=True,
    help="Also while older processes live that cannot go on with the new schema.",
)  # fmt: skip
@at_a_place
def migrate(
    place: Place,
    output: Output,
    partitions: int | None,
    grant_to: tuple[str, ...],
    regardless: bool,
) -> None:
    """Create or upgrade the schema; safe to run at once from many places, and under load."""
    from horolog.interface.several_logs import migrate_all

    settings = place.settings()
    applied = migrate_all(settings, partitions=partitions, grant_to=grant_to, regardless=regardless)
    if output.as_json:
        documents = [
            {"log": log, "applied": [{"number": m.number, "name": m.name} for m in migrations]}
            for log, migrations in applied.items()
        ]
        several = settings.place.logs > 1
        output.document({"logs": documents} if several else {"applied": documents[0]["applied"]})
        return
    for log, migrations in applied.items():
        where = f" to log {log}" if settings.place.logs > 1 else ""
        for migration in migrations:
            output.say(f"applied {migration.number:04} {migration.name}{where}")
        if not migrations:
            output.say("the schema is current" + (f" in log {log}" if where else ""))


def process_options(function: F) -> F:
    """As :func:`log_options`, and to whom its health and its figures are told."""
    function = click.option(
        "--health-host", default="127.0.0.1", show_default=True, metavar="HOST",
        help="Where the health port listens; 0.0.0.0 in a container.",
    )(function)  # fmt: skip
    function = click.option(
        "--health-port", type=click.IntRange(0, 65_535), metavar="PORT",
        help="Answer GET /livez, /readyz and /metrics there.",
    )(function)  # fmt: skip
    function = click.option(
        "--otel", is_flag=True,
        help="Send traces and metrics by OTLP, as the OTEL_... variables say (extra `otel`).",
    )(function)  # fmt: skip
    return log_options(function)


def log_options(function: F) -> F:
    """What is said, and the hidden option of children of `dev` and the demo."""
    function = click.option("--until-stdin-closes", is_flag=True, hidden=True)(function)
    function = click.option(
        "--log-format", type=click.Choice(["console", "json"]),
        help="What stderr is written in; --json means json.  [default: console]",
    )(function)  # fmt: skip
    return click.option(
        "--log-level",
        type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
        default="INFO",
        show_default=True,
        help="What is said on stderr; with --json, as JSON lines.",
    )(function)


@click.command()
@click.option(
    "--set",
    "stated",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the scanner, such as lease_s=5 (README, settings); repeatable.",
)
@process_options
@at_a_place
def scanner(
    place: Place,
    output: Output,
    stated: tuple[str, ...],
    log_level: str,
    log_format: str | None,
    otel: bool,
    health_host: str,
    health_port: int | None,
    until_stdin_closes: bool,
) -> None:
    """Run one scanner: it leads its share of the partitions and claims what is due."""
    from horolog.application.scanner.settings import ScannerSettings
    from horolog.interface.processes.loop import run

    values = dict(one.split("=", 1) for one in stated if "=" in one)
    if len(values) != len(stated):
        raise click.UsageError(
            "--set takes NAME=VALUE, each name once", click.get_current_context()
        )
    settings = ScannerSettings(**values)
    begin(output, log_level, log_format, until_stdin_closes)
    found = place.settings()
    with _monitored(
        "scanner", health_host, health_port, otel=otel, dead_after_s=30.0, namespace=found
    ) as monitor:
        run(_scan(found, settings, monitor))


@click.command()
@click.argument("worker", metavar="MODULE:WORKER")
@click.option("--queue", "queues", multiple=True, metavar="Q", help="Only from these; repeatable.")
@process_options
@at_a_place
def worker(
    place: Place,
    output: Output,
    worker: str,
    queues: tuple[str, ...],
    log_level: str,
    log_format: str | None,
    otel: bool,
    health_host: str,
    health_port: int | None,
    until_stdin_closes: bool,
) -> None:
    """Run one worker, such as myapp.jobs:worker; modules of this directory are found too."""
    from horolog.interface.processes.loop import run
    from horolog.interface.worker import load_worker, run_until_signalled

    settings = place.settings()
    loaded = load_worker(worker)
    if queues:
        loaded.queues = list(queues)
    begin(output, log_level, log_format, until_stdin_closes)
    # A handler that blocks the loop is slow, and its lease is kept all the same: not dead at once.
    with _monitored("worker", health_host, health_port, otel=otel, dead_after_s=600.0) as monitor:
        run(run_until_signalled(loaded, settings, monitor))


async def _scan(place: "Settings", settings: "ScannerSettings", monitor: "Monitor | None") -> None:
    from horolog.interface.processes.each_log import serve_each_log
    from horolog.interface.processes.scanner import run_scanner
    from horolog.interface.processes.signals import stop_on_signals

    async def scan(one: "Settings", stop: "asyncio.Event") -> None:
        await run_scanner(
            database_url=one.database_url(),
            nats_url=one.nats_url(),
            namespace=one.namespace,
            settings=settings,
            stop=stop,
            monitor=monitor,
            place=one.place,
        )

    with stop_on_signals() as stop:
        await serve_each_log(place, scan, stop, monitor)


@contextmanager
def _monitored(
    role: str,
    host: str,
    port: int | None,
    *,
    otel: bool,
    dead_after_s: float,
    namespace: "Settings | None" = None,
) -> Generator["Monitor | None"]:
    """The process's monitor, asked over HTTP or sending by itself; none where nobody wants it."""
    if port is None and not otel:
        yield None
        return
    from horolog.interface.processes.health_server import served
    from horolog.interface.processes.monitor import Monitor

    monitor = Monitor(dead_after_s=dead_after_s, namespace=namespace)
    with ExitStack() as stack:
        if otel:
            from horolog.interface.processes.telemetry import telemetry

            stack.enter_context(telemetry(monitor, role))
        if port is not None:
            bound = stack.enter_context(served(monitor, host, port))
            logging.getLogger("horolog").info("health and metrics on http://%s:%d", host, bound)
        yield monitor


def begin(output: Output, log_level: str, log_format: str | None, until_stdin_closes: bool) -> None:
    """What each process does first: logs to stderr, and watches for its parent's end."""
    from horolog.interface.cli.log_output import log_to_stderr

    log_to_stderr(level=log_level.upper(), as_json=log_format == "json" or output.as_json)
    if until_stdin_closes:
        from horolog.interface.processes.children import stop_when_stdin_closes

        stop_when_stdin_closes()
