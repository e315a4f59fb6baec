"""`horolog import`: what other schedulers have, as a file for `horolog job apply`."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from horolog.domain.errors import InvalidPolicy
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.main import DONE, REFUSED

if TYPE_CHECKING:
    from horolog.interface.importing.declared import Imported


@click.group("import", cls=NamedGroup)
def importing() -> None:
    """Turn a crontab, celery-beat's tables or APScheduler's jobs into a file for `job apply`.

    The document goes to stdout, what differs and what was refused to stderr. Exits 1 if something
    was refused; the rest is imported all the same. Nothing is written anywhere else.
    """


def _shared(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option(
        "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Write the document there, not to stdout.",
    )(function)  # fmt: skip
    return click.option(
        "--json", "as_json", is_flag=True, help="One document with `jobs` and `remarks`."
    )(function)


@importing.command()
@click.argument("file", metavar="FILE")
@click.option("--zone", metavar="Z", help="The machine's zone, for lines without CRON_TZ.")
@click.option("--system", is_flag=True, help="The sixth field is a user, as in /etc/crontab.")
@click.option(
    "--handler", default="crontab.run", show_default=True, metavar="NAME",
    help="The handler that runs the commands.",
)  # fmt: skip
@_shared
def crontab(
    file: str, zone: str | None, system: bool, handler: str, output: Path | None, as_json: bool
) -> int:
    """Import a crontab; FILE - is stdin: crontab -l | horolog import crontab - --zone Z."""
    from horolog.interface.importing.crontab import read_crontab

    text = _read(file)
    return _told(read_crontab(text, zone=zone, system=system, handler=handler), output, as_json)


@importing.command("celery-beat")
@click.argument("source", metavar="FILE|URL")
@_shared
def celery_beat(source: str, output: Path | None, as_json: bool) -> int:
    """Import django-celery-beat: `manage.py dumpdata django_celery_beat`, or a Postgres URL."""
    from horolog.interface.importing import celery_beat as beat

    if source.startswith(("postgresql://", "postgres://")):
        from horolog.infrastructure.postgres.celery_beat_tables import celery_beat_rows

        found = beat.read_tables(beat.rows_by_key(celery_beat_rows(source)))
    else:
        found = _parsed(source, beat.read_dump)
    return _told(found, output, as_json)


@importing.command()
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--exporter", is_flag=True, help="Print the program that writes FILE.")
@_shared
def apscheduler(file: str | None, exporter: bool, output: Path | None, as_json: bool) -> int:
    """Import APScheduler 3: FILE is what its exporter wrote in your own environment.

    A job store holds pickles, which Horolog does not open: horolog import apscheduler --exporter >
    export.py; python export.py myapp:scheduler > jobs.json; horolog import apscheduler jobs.json
    """
    from horolog.interface.importing.apscheduler import read_export

    if exporter:
        program = Path(__file__).parents[1] / "importing" / "apscheduler_export.py"
        click.echo(program.read_text(), nl=False)
        return DONE
    if file is None:
        raise click.UsageError("name the FILE, or --exporter", click.get_current_context())
    return _told(_parsed(file, read_export), output, as_json)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPolicy(f"{file} cannot be read: {error}") from None


def _parsed(file: str, read: Callable[[str], "Imported"]) -> "Imported":
    text = _read(file)
    try:
        return read(text)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidPolicy(f"{file} cannot be imported: {said}") from None


def _told(found: "Imported", output: Path | None, as_json: bool) -> int:
    document: dict[str, Any] = {"jobs": found.jobs}
    if as_json:
        document["remarks"] = [
            {"entry": one.entry, "kind": one.kind, "said": one.said} for one in found.remarks
        ]
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
    if not as_json:
        for one in found.remarks:
            click.echo(f"{one.entry}: {one.kind}: {one.said}", err=True)
        counted = f"{len(found.jobs)} jobs imported, {found.refused} refused"
        click.echo(f"{counted}; next: horolog job apply {output or 'FILE'} --dry-run", err=True)
    return REFUSED if found.refused else DONE
