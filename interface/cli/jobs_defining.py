"""The commands that state what a job is: register, reschedule, update."""

from typing import Any

import click

from horolog.interface.cli.completing import job_argument
from horolog.interface.cli.job_options import change_options_of_a_job, job_options, taken_policies
from horolog.interface.cli.job_view import job_id, show_job
from horolog.interface.cli.jobs_changing import change_options
from horolog.interface.cli.place import Place, at_a_place
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.schedule_difference import show_difference
from horolog.interface.cli.schedule_options import schedule_options, taken_schedule


@click.command()
@click.argument("name")
@schedule_options
@job_options
@click.option("--key", metavar="K", help="Registering the same key again returns the same job.")
@click.option("--replace", is_flag=True, help="Change the job that has the key where it differs.")
@click.option("--subject", metavar="WHO", help="Whose data it carries: that is encrypted.")
@click.option("--concurrency-key", metavar="K", help="Jobs that share it are led together.")
@click.option("--reason", metavar="WHY", help="Why; it is kept in the log.")
@at_a_place
def register(place: Place, output: Output, name: str, **options: Any) -> None:
    """Register a job for the handler NAME and print it.

    For example: horolog job register invoices.bill --cron "0 2 * * *" --zone America/New_York
    --payload '{"amount": 10}' --key bill-42
    """
    schedule = taken_schedule(options)
    assert schedule is not None
    policies = taken_policies(options)
    policies |= {
        name: options[name]
        for name in ("key", "replace", "subject", "concurrency_key", "reason")
        if options[name] is not None
    }
    from horolog.domain.errors import KeyConflict

    with place.scheduler() as scheduler:
        try:
            registered = scheduler.register(name, schedule=schedule, **policies)
        except KeyConflict as error:
            # Said in the words of this interface.
            raise KeyConflict(str(error).replace("replace=True", "--replace")) from error
        show_job(output, registered)


@click.command()
@job_argument
@schedule_options
@click.option("--dry-run", is_flag=True, help="Only show which fire times would come and go.")
@click.option("-n", "count", type=click.IntRange(1, 10_000), default=20, show_default=True,
              help="How many fire times of each, with --dry-run.")  # fmt: skip
@change_options
@at_a_place
def reschedule(
    place: Place,
    output: Output,
    job: str,
    dry_run: bool,
    count: int,
    expected_version: int | None,
    reason: str | None,
    **options: Any,
) -> None:
    """Give a job another schedule, from now on; what is claimed already still runs."""
    schedule = taken_schedule(options)
    assert schedule is not None
    with place.scheduler() as scheduler:
        if dry_run:
            show_difference(output, scheduler.compare(job, schedule, n=count))
            return
        changed = scheduler.reschedule(
            job_id(scheduler, job), schedule, expected_version=expected_version, reason=reason
        )
        show_job(output, changed)


@click.command()
@job_argument
@change_options_of_a_job
@change_options
@at_a_place
def update(
    place: Place,
    output: Output,
    job: str,
    expected_version: int | None,
    reason: str | None,
    **options: Any,
) -> None:
    """Change a job's payload or policies; what is not named stays as it is."""
    with place.scheduler() as scheduler:
        identity = job_id(scheduler, job)
        policies = taken_policies(options, retry=scheduler.job(identity).retry)
        if not policies:
            raise click.UsageError(
                "nothing to change: name at least one option such as --payload or --queue",
                click.get_current_context(),
            )
        changed = scheduler.update(
            identity, expected_version=expected_version, reason=reason, **policies
        )
        show_job(output, changed)
