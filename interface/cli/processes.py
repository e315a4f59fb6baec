"""`horolog migrate`, `scanner` and `worker`: one process each, as production runs them.

SIGTERM and Ctrl-C drain: the scanner publishes what it has claimed and releases its partitions, the
worker finishes what it runs within its grace. A second signal ends at once.
"""

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.command()
@click.option("--partitions", type=int, metavar="N", help="Of a new namespace.  [default: 64]")
@click.option(
    "--grant-to", multiple=True, metavar="ROLE",
    help="A Postgres role that gets what a service needs and no more; repeatable.",
)  # fmt: skip
@at_a_place
def migrate(
    place: Place, output: Output, partitions: int | None, grant_to: tuple[str, ...]
) -> None:
    """Create or upgrade the schema; safe to run at once from many places."""
    from horolog.infrastructure.postgres.database import Database
    from horolog.infrastructure.postgres.migrate import PARTITIONS
    from horolog.infrastructure.postgres.migrate import migrate as apply

    settings = place.settings()
    database = Database(settings.database_url(), settings.namespace)
    try:
        applied = apply(database, partitions=partitions or PARTITIONS, grant_to=grant_to)
    finally:
        database.close()
    if output.as_json:
        output.document({"applied": [{"number": m.number, "name": m.name} for m in applied]})
    elif applied:
        for migration in applied:
            output.say(f"applied {migration.number:04} {migration.name}")
    else:
        output.say("the schema is current")
