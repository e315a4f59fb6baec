"""`horolog job`: register, look at and change jobs.

A job is named by its id or by its key, wherever one is asked for.
"""

import click

from horolog.interface.cli.jobs_applying import apply
from horolog.interface.cli.jobs_changing import backfill, cancel, pause, resume, trigger
from horolog.interface.cli.jobs_defining import register, reschedule, update
from horolog.interface.cli.jobs_reading import changes, history, listing, show, upcoming
from horolog.interface.cli.lazy_group import NamedGroup


@click.group(cls=NamedGroup)
def job() -> None:
    """Register, look at and change jobs. JOB is an id or a key."""


for command in (
    register,
    apply,
    show,
    listing,
    upcoming,
    changes,
    history,
    pause,
    resume,
    trigger,
    reschedule,
    update,
    backfill,
    cancel,
):
    job.add_command(command)
