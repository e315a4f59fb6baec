"""How a difference of two schedules, and a list of fire times, are shown."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from horolog.interface.cli.rendering import Output, text

if TYPE_CHECKING:
    from horolog.domain.schedule import FireTime, Schedule, ScheduleDifference


def show_difference(output: Output, difference: "ScheduleDifference") -> None:
    """Both schedules' fire times in order: ``-`` would go, ``+`` would come, others stay."""
    if output.as_json:
        output.document(difference)
        return
    signed = [
        *((fire, "") for fire in difference.kept),
        *((fire, "+") for fire in difference.added),
        *((fire, "-") for fire in difference.removed),
    ]
    signed.sort(key=lambda row: row[0].at)
    output.table(
        ["", "instant (UTC)", "local", "day", "note"],
        [(sign, text(f.at), text(f.local), f"{f.local:%a}", f.note) for f, sign in signed],
        empty="neither schedule has a fire time ahead",
        whole=("instant (UTC)", "local"),
    )
    until = "" if difference.until is None else f", up to {text(difference.until)}"
    output.say(
        f"{len(difference.added)} more, {len(difference.removed)} fewer,"
        f" {len(difference.kept)} the same{until}"
    )


def show_month(schedule: "Schedule", fires: Sequence["FireTime"]) -> None:
    """The month of the first fire time as a picture, if there is one."""
    from horolog.interface.cli.month_picture import month_picture

    lines: Iterable[str] = month_picture(schedule, fires[0]) if fires else ()
    for line in ("", *lines) if fires else ():
        click.echo(line)
