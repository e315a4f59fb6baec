"""The commands that change a job's course: pause, resume, cancel, trigger, backfill."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from horolog.interface.cli.completing import job_argument
from horolog.interface.cli.job_view import job_id, show_job, show_occurrence
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.schedule_options import aware_instant

if TYPE_CHECKING:
    from horolog.application.answers.planned_run import PlannedRun
    from horolog.application.commands.backfill_request import BackfillOptions

F = TypeVar("F", bound=Callable[..., Any])


def change_options(function: F) -> F:
    """``--reason`` and ``--expected-version``."""
    function = click.option(
        "--expected-version", type=int, metavar="N", help="Refuse if the job is at another version."
    )(function)
    return click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")(function)


@click.command()
@job_argument
@change_options
@at_a_place
def pause(
    place: Place, output: Output, job: str, reason: str | None, expected_version: int | None
) -> None:
    """Stop a job's schedule until it is resumed."""
    with place.scheduler() as scheduler:
        identity = job_id(scheduler, job)
        changed = scheduler.pause(identity, reason=reason, expected_version=expected_version)
        show_job(output, changed)


@click.command()
@job_argument
@click.option("--catch-up", is_flag=True, help="The catch-up policy decides on the pause's, too.")
@change_options
@at_a_place
def resume(
    place: Place,
    output: Output,
    job: str,
    catch_up: bool,
    reason: str | None,
    expected_version: int | None,
) -> None:
    """Let a paused job's schedule go on; the fire times of the pause do not run."""
    with place.scheduler() as scheduler:
        identity = job_id(scheduler, job)
        changed = scheduler.resume(
            identity, catch_up=catch_up, reason=reason, expected_version=expected_version
        )
        show_job(output, changed)


@click.command()
@job_argument
@change_options
@at_a_place
def cancel(
    place: Place, output: Output, job: str, reason: str | None, expected_version: int | None
) -> None:
    """End a job for good; what has not begun does not run, what runs is asked to stop."""
    with place.scheduler() as scheduler:
        identity = job_id(scheduler, job)
        changed = scheduler.cancel(identity, reason=reason, expected_version=expected_version)
        show_job(output, changed)


@click.command()
@job_argument
@click.option("--at", metavar="T", help="When, ISO 8601.  [default: now]")
@click.option("--request-id", metavar="ID", help="The same request id is one run.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def trigger(
    place: Place,
    output: Output,
    job: str,
    at: str | None,
    request_id: str | None,
    reason: str | None,
) -> None:
    """Order an extra run beside the schedule and print the occurrence."""
    when = None if at is None else aware_instant("--at", at)
    with place.scheduler() as scheduler:
        occurrence = scheduler.trigger(
            job_id(scheduler, job), at=when, request_id=request_id, reason=reason
        )
        show_occurrence(output, occurrence)


@click.command()
@job_argument
@click.option("--start", required=True, metavar="T", help="The first instant, ISO 8601.")
@click.option("--end", required=True, metavar="T", help="The last instant, ISO 8601.")
@click.option(
    "--reprocess",
    type=click.Choice(["none", "failed", "all"]),
    default="none",
    show_default=True,
    help="What of that which has run runs again.",
)
@click.option(
    "--definition",
    type=click.Choice(["then", "current"]),
    default="then",
    show_default=True,
    help="The job as it was at each fire time, or as it is now.",
)
@click.option("--reverse", is_flag=True, help="Begin with the newest.")
@click.option("--rate", type=float, metavar="N", help="So many runs a second.  [default: at once]")
@click.option("--request-id", metavar="ID", help="The same request id runs nothing again twice.")
@click.option("--dry-run", is_flag=True, help="Only list what would run.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def backfill(
    place: Place,
    output: Output,
    job: str,
    start: str,
    end: str,
    dry_run: bool,
    reason: str | None,
    **options: Any,
) -> None:
    """Order runs for the past fire times of a range that have no occurrence yet."""
    first, last = aware_instant("--start", start), aware_instant("--end", end)
    asked = cast("BackfillOptions", options)
    with place.scheduler() as scheduler, output.progress("ordering runs"):
        identity = job_id(scheduler, job)
        if dry_run:
            planned = scheduler.backfill(identity, first, last, dry_run=True, **asked)
            _show_planned(output, planned)
            return
        count = scheduler.backfill(identity, first, last, reason=reason, **asked)
    if output.as_json:
        output.document({"job_id": identity, "ordered": count})
    else:
        output.say(f"{count} runs ordered")


def _show_planned(output: Output, planned: "list[PlannedRun]") -> None:
    if output.as_json:
        output.document(planned)
        return
    output.table(
        ["fire time", "due", "job's version", "", "id"],
        [
            (run.fire_time, run.due, run.definition_version or "present",
             "again" if run.again else "", str(run.occurrence_id))
            for run in planned
        ],
        empty="nothing to run: each fire time of the range has an occurrence",
        whole=("fire time", "due"),
    )  # fmt: skip
    output.say(f"{len(planned)} runs would be ordered")
