"""`horolog roles`: a role for each kind of process, with what it needs and no more."""

import re

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output


@click.command()
@click.option("--apply", "run", is_flag=True, help="Run it; a second time changes nothing.")
@click.option("--nats", is_flag=True, help="Print users and permissions for a NATS server instead.")
@click.option(
    "--alert-subject", "alerts", multiple=True, metavar="SUBJECT",
    help="With --nats: a subject that rules of alerts publish to; repeatable.",
)  # fmt: skip
@click.option("--prefix", metavar="NAME", help="What the roles' names begin with.  [the namespace]")
@at_a_place
def roles(
    place: Place,
    output: Output,
    run: bool,
    nats: bool,
    alerts: tuple[str, ...],
    prefix: str | None,
) -> None:
    """Print the SQL that makes the roles client, scanner, worker, auditor and owner.

    With --apply it is run: by a superuser, or by the owner of the schema with CREATEROLE. A login
    becomes a member of the role that its process needs. For example:
    horolog roles --apply; psql -c 'GRANT horolog_worker TO my_worker'
    """
    from horolog.infrastructure.postgres.database import Database
    from horolog.infrastructure.postgres.roles.applying import apply, joining, script
    from horolog.infrastructure.postgres.roles.kinds import KINDS, OWNER
    from horolog.infrastructure.postgres.roles.statements import checked_prefix, role_name

    if (nats and run) or (alerts and not nats):
        raise click.UsageError("--nats prints only; --alert-subject goes with it")
    for subject in alerts:
        if not re.fullmatch(r"[A-Za-z0-9_.*>-]+", subject):
            raise click.UsageError(f"{subject!r} is no subject of NATS")
    settings = place.settings()
    named = checked_prefix(prefix or settings.namespace)
    if nats:
        _print_permissions(output, settings.namespace, named, alerts)
        return
    statements = script(Database("", settings.namespace), named)
    for one in settings.each_log() if run else ():
        database = Database(one.database_url(), one.namespace)
        try:
            apply(database, named)
        finally:
            database.close()
    made = [role_name(named, kind) for kind in (*KINDS, OWNER)]
    if output.as_json:
        output.document(
            {"applied": run, "roles": made, "statements": statements, "joining": joining(named)}
        )
        return
    if run:
        output.say(f"made and granted to: {', '.join(made)}")
        output.say("Logins become members of what their process needs, for example:")
    else:
        for statement in statements:
            click.echo(f"{statement};")
        click.echo("-- Then logins become members of what their process needs, for example:")
    for line in joining(named):
        click.echo(f"{'' if run else '-- '}{line};")


def _print_permissions(
    output: Output, namespace: str, prefix: str, alerts: tuple[str, ...]
) -> None:
    from horolog.infrastructure.nats.permissions import KINDS, configuration, hears, publishes

    if output.as_json:
        output.document(
            {
                f"{prefix}_{kind}": {
                    "publish": publishes(namespace, kind)
                    + list(alerts if kind == "scanner" else ()),
                    "subscribe": hears(namespace, kind),
                }
                for kind in KINDS
            }
        )
    else:
        click.echo(configuration(namespace, prefix, alerts))
