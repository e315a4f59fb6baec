"""`horolog schedule`: when a schedule fires, without any server."""

from datetime import UTC, datetime
from typing import Any

import click

from horolog.interface.cli.completing import job_keys
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output, text
from horolog.interface.cli.schedule_difference import show_difference, show_month
from horolog.interface.cli.schedule_options import (
    aware_instant,
    old_schedule_options,
    schedule_options,
    taken_old_schedule,
    taken_schedule,
)
from horolog.interface.cli.zone_data import zone_data


@click.group(cls=NamedGroup)
def schedule() -> None:
    """When a schedule fires. `preview` and `diff` of two schedules need no server."""


schedule.add_command(zone_data)


@schedule.command()
@schedule_options
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=10, show_default=True,
              help="How many fire times.")  # fmt: skip
@click.option("--after", metavar="T", help="The instant to ask from.  [default: now]")
@click.option("--month", is_flag=True, help="A picture of the first month, by day and hour.")
@click.option("--json", "as_json", is_flag=True, help="A JSON array instead of a table.")
def preview(count: int, after: str | None, month: bool, as_json: bool, **options: Any) -> None:
    """The next fire times, each with its local time and what a clock change did to it.

    For example: horolog schedule preview --cron "30 2 * * *" --zone America/New_York
    --after 2027-03-13T00:00:00-05:00 --month
    """
    from horolog.domain.schedule import tzdata_version

    zone: str | None = options["zone"]
    stated = taken_schedule(options)
    assert stated is not None
    begin = datetime.now(UTC) if after is None else aware_instant("--after", after, zone)
    stated = stated.anchored(begin)
    output = Output(as_json=as_json)
    fires = stated.upcoming(begin, count)
    if as_json:
        output.document(fires)
        return
    local = zone or "UTC"
    output.table(
        ["instant (UTC)", f"local ({local})", "day", "note"],
        [(text(fire.at), text(fire.local), f"{fire.local:%a}", fire.note) for fire in fires],
        empty=f"no fire time after {text(begin)}",
        whole=("instant (UTC)", f"local ({local})"),
    )
    if month:
        show_month(stated, fires)
    click.echo(click.style(f"\nzone data: tzdata {tzdata_version()}", dim=True))


@schedule.command()
@click.argument("job", metavar="[JOB]", required=False, shell_complete=job_keys)
@old_schedule_options
@schedule_options
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=20, show_default=True,
              help="How many fire times of each.")  # fmt: skip
@click.option("--after", metavar="T", help="The instant to ask from, without JOB.  [default: now]")
@at_a_place
def diff(
    place: Place,
    output: Output,
    job: str | None,
    count: int,
    after: str | None,
    **options: Any,
) -> None:
    """What another schedule would change: fire times that come, go and stay.

    Of a job, or of two schedules; the options of the old one begin with --old-, as in
    horolog schedule diff --old-cron "0 2 * * *" --old-zone UTC --cron "0 3 * * *" --zone UTC
    """
    from horolog.domain.schedule import difference

    zone: str | None = options["zone"]
    old = taken_old_schedule(options)
    new = taken_schedule(options)
    assert new is not None
    if (job is None) is (old is None) or (job is not None and after is not None):
        raise click.UsageError(
            "give either JOB or the --old-… options of a schedule (and --after only with these)",
            click.get_current_context(),
        )
    if job is not None:
        with place.scheduler() as scheduler:
            show_difference(output, scheduler.compare(job, new, n=count))
        return
    assert old is not None
    begin = datetime.now(UTC) if after is None else aware_instant("--after", after, zone)
    show_difference(output, difference(old.anchored(begin), new.anchored(begin), begin, count))
