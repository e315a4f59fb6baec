"""What a shell completes beside commands and options: the keys of jobs, the names of queues.

Asked of the log while somebody holds the tab key: whatever is not there soon, or at all, is left
out without a word.
"""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import click

from horolog.interface.cli.place import LOOKED_AT, STATED, Place

if TYPE_CHECKING:
    from horolog.interface.scheduler import Scheduler

PATIENCE_S: Final = 3.0


def job_keys(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The keys of jobs that begin so."""
    return _asked(
        ctx, incomplete, lambda scheduler: (job.key for job in scheduler.jobs(limit=LOOKED_AT))
    )


def queue_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The queues of jobs, and those that have a limit, that begin so."""

    def names(scheduler: "Scheduler") -> Iterable[str]:
        limited = {one.queue for one in scheduler.limited_queues()}
        return limited | {job.queue for job in scheduler.jobs(limit=LOOKED_AT)}

    return _asked(ctx, incomplete, names)


def _asked(
    ctx: click.Context,
    incomplete: str,
    question: "Callable[[Scheduler], Iterable[str | None]]",
) -> list[str]:
    from horolog.domain.errors import HorologError

    stated: dict[str, Any] = {name: ctx.params.get(name) for name in STATED}
    place = Place(**stated)
    found: list[str] = []

    def ask() -> None:
        try:
            with place.scheduler() as scheduler:
                found.extend(sorted({name for name in question(scheduler) if name}))
        except HorologError:
            return

    # A service that swallows everything is not waited for: the thread ends with the process.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return [name for name in found if name.startswith(incomplete)]


job_argument = click.argument("job", metavar="JOB", shell_complete=job_keys)
"""The job that a command is about."""
