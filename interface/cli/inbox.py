"""`horolog inbox`: commands that clients committed in transactions of their own, and which of them
were refused by then."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.inbox import PostgresInboxList
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.main import DONE, REFUSED
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.group(cls=NamedGroup)
def inbox() -> None:
    """Commands of clients' transactions: what waits for its leader, and what was set aside."""


@inbox.command("list")
@click.option("--refused", is_flag=True, help="Only what was set aside.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@at_a_place
def listing(place: Place, output: Output, refused: bool, limit: int) -> None:
    """List what waits and what was set aside, with the cause."""
    with _inbox(place) as opened:
        found = opened.listed(refused=refused, limit=limit)
    if output.as_json:
        output.document(found)
        return
    output.table(
        ["id", "command", "job", "actor", "given", "refused", "error"],
        [
            (
                one.id,
                one.command,
                str(one.job_id),
                one.actor,
                one.given_at,
                one.refused_at,
                one.error,
            )
            for one in found
        ],
        empty="nothing waits, and nothing was set aside",
        whole=("id", "job"),
    )


@inbox.command()
@click.argument("row", metavar="ID", type=int)
@at_a_place
def retry(place: Place, output: Output, row: int) -> int:
    """Have a command that was set aside carried out after all."""
    with _inbox(place) as opened:
        done = opened.retry(row)
    return _said(output, row, done, "waits for its leader again")


@inbox.command()
@click.argument("row", metavar="ID", type=int)
@at_a_place
def discard(place: Place, output: Output, row: int) -> int:
    """Forget a command that was set aside."""
    with _inbox(place) as opened:
        done = opened.discard(row)
    return _said(output, row, done, "is forgotten")


def _said(output: Output, row: int, done: bool, what: str) -> int:
    if not done:
        click.echo(f"horolog: no command {row} is set aside: see horolog inbox list", err=True)
        return REFUSED
    if output.as_json:
        output.document({"id": row, "done": True})
    output.say(f"command {row} {what}")
    return DONE


@contextmanager
def _inbox(place: Place) -> Generator[PostgresInboxList]:
    settings = place.settings()
    database = Database(settings.database_url(), settings.namespace)
    try:
        yield PostgresInboxList(database)
    finally:
        database.close()
