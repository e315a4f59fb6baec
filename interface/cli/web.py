"""`horolog web`: the web page and the HTTP API, as a process of their own."""

from pathlib import Path

import click

from horolog.interface.cli.main import DONE
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.processes import log_options
from horolog.interface.cli.rendering import Output


@click.command()
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="0 takes a free one.  [default: 8480]")
@click.option(
    "--accounts", type=click.Path(path_type=Path), metavar="FILE",
    help="Who may come: a line `read|write NAME SECRET` each.  [env: HOROLOG_WEB_ACCOUNTS]",
)  # fmt: skip
@click.option(
    "--name", "names", multiple=True, metavar="NAME",
    help="What the server is called in a URL, beyond loopback; repeatable.",
)  # fmt: skip
@click.option("--tls-certificate", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--behind-proxy", is_flag=True, default=None, help="A proxy in front speaks TLS.")
@click.option("--read-only", is_flag=True, default=None, help="Nobody changes anything here.")
@log_options
@at_a_place
def web(
    place: Place,
    output: Output,
    host: str | None,
    port: int | None,
    accounts: Path | None,
    names: tuple[str, ...],
    tls_certificate: Path | None,
    tls_key: Path | None,
    behind_proxy: bool | None,
    read_only: bool | None,
    log_level: str,
    log_format: str | None,
    until_stdin_closes: bool,
) -> int:
    """Serve the web page, and the HTTP API under /api/v1.

    On loopback everybody may come who has an account on this machine. Any other address demands
    accounts, and TLS or a proxy that speaks it.
    """
    refuse_without_the_extra()
    from horolog.interface.cli.processes import begin
    from horolog.interface.settings import web_environment
    from horolog.interface.web.accounts import read_accounts
    from horolog.interface.web.serving import serve
    from horolog.interface.web.settings import WebSettings

    settings: WebSettings = WebSettings.read(
        web_environment(),
        host=host,
        port=port,
        accounts=None if accounts is None else read_accounts(accounts),
        names=names or None,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        read_only=read_only,
    )
    begin(output, log_level, log_format, until_stdin_closes)

    def ready(address: str) -> None:
        if output.as_json:
            output.line({"ready": True, "address": address})
        elif not until_stdin_closes:  # else `horolog dev` has said it
            click.echo(f"the page is at {address}; Ctrl-C stops")

    found = place.settings()
    if found.log is None and found.place.logs > 1:
        found.database_url()  # says that the page is of one log
    serve(found, settings, ready=ready)
    return DONE


def has_the_extra() -> bool:
    """Whether what the page needs is installed."""
    from importlib.util import find_spec

    return all(find_spec(name) is not None for name in ("fastapi", "jinja2", "uvicorn"))


def refuse_without_the_extra() -> None:
    """Raises a usage error that says what to install."""
    if not has_the_extra():
        raise click.ClickException(
            "the web page needs more than is installed: pip install 'horolog[web]'"
        )
