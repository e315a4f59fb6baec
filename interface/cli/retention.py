"""`horolog retention`: finished occurrences that are old enough leave, month by month."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output

if TYPE_CHECKING:
    from horolog.application.retention import MonthOutcome
    from horolog.interface.retention import Format


@click.command()
@click.option(
    "--older-than", type=float, required=True, metavar="DAYS",
    help="Months whose whole range is older.",
)  # fmt: skip
@click.option(
    "--archive", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Write the events that leave to a file for each month first.",
)  # fmt: skip
@click.option(
    "--format", "archive_format", type=click.Choice(["jsonl", "parquet"]), default="jsonl",
    show_default=True, help="Of the archive; parquet needs pyarrow.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@at_a_place
def retention(
    place: Place,
    output: Output,
    older_than: float,
    archive: Path | None,
    archive_format: "Format",
    dry_run: bool,
) -> None:
    """Prune finished occurrences that are older, in whole months (UTC).

    Jobs and everything unresolved stay. The log says what left it, so that a rebuild fires nothing
    again and `horolog verify` misses nothing.
    """
    from horolog.interface.retention import retain

    def told(month: "MonthOutcome") -> None:
        output.say(_line(month, dry_run=dry_run))

    outcome = retain(
        place.settings(),
        older_than_days=older_than,
        archive=archive,
        archive_format=archive_format,
        dry_run=dry_run,
        told=told,
    )
    if output.as_json:
        output.document(outcome)
    elif not outcome.months:
        output.say(f"there is no month that lies before {outcome.before:%Y-%m-%d} as a whole")


def _line(month: "MonthOutcome", *, dry_run: bool) -> str:
    counts = f"{month.occurrences:,} occurrences, {month.events:,} events"
    kept = f", {month.kept} unresolved stay" if month.kept else ""
    if month.hindrance is not None:
        return f"{month.month}  stays: {month.hindrance}"
    if dry_run:
        return f"{month.month}  would go: {counts}{kept}"
    archive = "" if month.archive is None else f", archived in {month.archive}"
    return f"{month.month}  pruned: {counts}{kept}{archive}"
