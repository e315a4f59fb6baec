"""`job apply`: makes the jobs that a file declares true."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, on_one_line, text
from horolog.interface.cli.schedule_text import schedule_text

if TYPE_CHECKING:
    from horolog.application.answers.difference import Difference


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show the difference.")
@click.option("--prune", is_flag=True, help="Cancel the keyed jobs that the file does not name.")
@click.option("--within", metavar="K[=V]", help="Prune only jobs with this label.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def apply(
    place: Place,
    output: Output,
    file: Path,
    dry_run: bool,
    prune: bool,
    within: str | None,
    reason: str | None,
) -> None:
    """Register and change jobs until they are as FILE (TOML, JSON, YAML) declares them.

    A second time it does nothing. For example:

    \b
    [[jobs]]
    key = "bill-ann"
    name = "invoices.bill"
    schedule = {cron = "0 2 * * *", zone = "America/New_York"}
    payload = {customer = "ann"}
    """
    from horolog.interface.job_file import read_job_file

    if within is not None and not prune:
        raise click.UsageError("--within says what --prune may cancel", click.get_current_context())
    specs = read_job_file(file)
    with place.scheduler() as scheduler, output.progress("applying"):
        difference = scheduler.apply(
            specs, prune=prune, within=within, dry_run=dry_run, reason=reason
        )
    if output.as_json:
        output.document(difference)
    else:
        show_difference(difference, dry_run=dry_run)


def show_difference(difference: "Difference", *, dry_run: bool) -> None:
    """One line for each job that is not as declared, one for each field, and the counts."""
    for key in difference.created:
        click.echo(click.style(f"+ {on_one_line(key)}", fg="green"))
    for change in difference.changed:
        click.echo(click.style(f"~ {on_one_line(change.key)}", fg="yellow"))
        for name, values in change.fields.items():
            click.echo(f"    {name}: {_shown(name, values.old)} → {_shown(name, values.new)}")
    for key in difference.pruned:
        click.echo(click.style(f"- {on_one_line(key)}", fg="red"))
    counts = {
        "created": len(difference.created),
        "changed": len(difference.changed),
        "pruned": len(difference.pruned),
        "unchanged": len(difference.unchanged),
    }
    would = "would be " if dry_run else ""
    click.echo(", ".join(f"{count} {would}{what}" for what, count in counts.items()))


def _shown(name: str, value: Any) -> str:
    if name == "schedule":
        return schedule_text(value)
    return "nothing" if value is None else text(value)
