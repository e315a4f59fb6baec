"""`schedule zone-data`: what an update of the time zone data moves, and its correction."""

import click

from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, text

PAGE = 1_000


@click.command("zone-data")
@click.option("--apply", "applied", is_flag=True, help="Correct them; one event for each job.")
@click.option("-n", "following", type=click.IntRange(1, 100), default=3, show_default=True,
              help="How many fire times to show of each.")  # fmt: skip
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def zone_data(
    place: Place, output: Output, applied: bool, following: int, reason: str | None
) -> None:
    """The jobs whose next fire time the installed zone data moves.

    To be run after an update of the tzdata package. Without --apply nothing is changed.
    """
    from horolog.domain.schedule import tzdata_version

    rows: list[tuple[object, ...]] = []
    count, after = 0, None
    with place.scheduler() as scheduler, output.progress("looking at jobs") as advance:
        while page := scheduler.zone_corrections(
            apply=applied, following=following, after=after, limit=PAGE, reason=reason
        ):
            count, after = count + len(page), page[-1].job_id
            advance(count)
            for one in page:
                if output.as_json:
                    output.line(one)
                fires = "\n".join(
                    f"{text(fire.at)}  {text(fire.local)}  {fire.note}".rstrip()
                    for fire in one.fires
                )
                name = one.key or f"{one.name} {one.job_id}"
                rows.append((name, one.zone, one.recorded, one.recorded_with, fires or "never"))
    if output.as_json:
        return
    output.table(
        ["job", "zone", "was at (UTC)", "by tzdata", f"is at (UTC, local), by {tzdata_version()}"],
        rows,
        empty=f"every job's next fire time is right by tzdata {tzdata_version()}",
        whole=("was at (UTC)",),
    )
    if rows:
        done = "corrected" if applied else "to correct: --apply does it"
        output.say(f"{count} {'job' if count == 1 else 'jobs'} {done}")
