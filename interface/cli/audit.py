"""`horolog audit`: what ran, what did not and why, figures, and what was due at some instant.

Every listing goes out as a table, as JSON, or as a file for analysts.
"""

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from horolog.domain.failure import FAILURE_KINDS
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause
from horolog.interface.cli.export import Files, exportable, pages, some_or_all
from horolog.interface.cli.job_view import job_id
from horolog.interface.cli.lazy_group import NamedGroup
from horolog.interface.cli.listing import SHOWN, Table, list_out
from horolog.interface.cli.occurrences import STATES, from_archive
from horolog.interface.cli.place import Place, at_a_place, reveal_option
from horolog.interface.cli.rendering import Output
from horolog.interface.cli.schedule_options import aware_instant

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=NamedGroup)
def audit() -> None:
    """What ran, what did not and why, figures, and what was due at an instant."""


def chosen_by_job(function: F) -> F:
    """Adds the options that choose by time and by what jobs are."""
    for option in reversed(
        [
            click.option("--since", metavar="T", help="From then on."),
            click.option("--until", metavar="T", help="Before then."),
            click.option("--job", metavar="JOB", help="Of this job, an id or a key."),
            click.option("--name", metavar="NAME", help="Of jobs of this handler."),
            click.option("--queue", metavar="QUEUE", help="Of jobs of this queue."),
            click.option("--owner", metavar="OWNER", help="Of jobs of this owner."),
            click.option("--label", metavar="K[=V]", help="Of jobs with this label."),
        ]
    ):
        function = option(function)
    return function


def paged(function: F) -> F:
    """Adds ``--after`` and ``--limit``."""
    function = some_or_all(SHOWN)(function)
    return click.option("--after", metavar="ID", help="Go on after this one.")(function)


@audit.command()
@chosen_by_job
@click.option("--by-end", is_flag=True, help="--since and --until speak of ends, not fire times.")
@click.option("--state", type=click.Choice(STATES))
@click.option("--kind", type=click.Choice(get_args(OccurrenceKind)), help="What ordered them.")
@click.option("--failure", type=click.Choice(FAILURE_KINDS), help="Any attempt failed so.")
@click.option("--worker", metavar="WORKER", help="Any attempt was made by this worker.")
@from_archive
@paged
@exportable
@reveal_option
@at_a_place
def runs(
    place: Place,
    output: Output,
    after: str | None,
    limit: int | None,
    files: Files,
    **choice: Any,
) -> None:
    """What ran between two instants: when, by whom, how long, how late, how it ended."""
    from horolog.application.answers.execution import Execution

    table = Table[Execution](
        ["id", "name", "fire time", "state", "attempt", "late s", "took s", "worker", "failure",
         *(["archive"] if choice.get("archive") else [])],
        lambda run: (
            str(run.id), run.key or run.name, run.fire_time, run.state, run.attempt,
            _seconds(run.late_s), _seconds(run.seconds), run.worker, run.failure,
            *([run.archive] if choice.get("archive") else []),
        ),
        empty="nothing ran",
    )  # fmt: skip
    with place.scheduler() as scheduler:
        wanted = _choice(scheduler, choice)

        def page(behind: Any, size: int) -> list[Execution]:
            return scheduler.executions(after=behind, limit=size, **wanted)

        list_out(output, files, Execution, page, table, after=after, limit=limit)


@audit.command()
@chosen_by_job
@click.option("--cause", type=click.Choice(get_args(SkipCause)))
@paged
@exportable
@at_a_place
def skips(
    place: Place,
    output: Output,
    after: str | None,
    limit: int | None,
    files: Files,
    **choice: Any,
) -> None:
    """What did not run, and why: dropped ranges of fire times, and skipped runs."""
    from horolog.application.answers.skip import Skip

    table = Table[Skip](
        ["id", "name", "first", "last", "count", "because", "by"],
        lambda skip: (
            str(skip.id), skip.name, skip.first, skip.last, skip.count, skip.because, skip.actor,
        ),
        empty="nothing was left out",
    )  # fmt: skip
    with place.scheduler() as scheduler:
        wanted = _choice(scheduler, choice)

        def page(behind: Any, size: int) -> list[Skip]:
            return scheduler.skips(after=behind, limit=size, **wanted)

        list_out(output, files, Skip, page, table, after=after, limit=limit)


@audit.command()
@chosen_by_job
@click.option("--by", type=click.Choice(["job", "name", "all"]), default="job", show_default=True)
@click.option("--bucket", type=float, default=86_400, show_default=True, metavar="SECONDS")
@click.option("--limit", type=click.IntRange(1), help="At most so many rows.")
@exportable
@at_a_place
def stats(
    place: Place,
    output: Output,
    by: Any,
    bucket: float,
    limit: int | None,
    files: Files,
    **choice: Any,
) -> None:
    """Runs, failures, durations and lateness per job or handler, in stretches of time."""
    from horolog.application.answers.statistics import Statistics

    table = Table[Statistics](
        ["from", "name", "runs", "dead", "skipped", "failures", "took p50/p95/p99 s",
         "late p50/p95/p99 s"],
        lambda row: (
            row.bucket, row.name or "all", row.runs, row.dead, row.skipped, row.failures,
            _three(row.duration_s), _three(row.late_s),
        ),
        empty="nothing has ended",
        whole=("from",),
    )  # fmt: skip
    with place.scheduler() as scheduler:
        wanted = _choice(scheduler, choice)
        found = pages(
            lambda behind, size: scheduler.statistics(
                by=by, bucket_s=bucket, after=behind, limit=size, **wanted
            ),
            lambda row: (row.bucket, row.group),
            None,
            limit,
        )
        if files:
            files.write(output, found, Statistics)
        else:
            table.show(output, list(found))


@audit.command()
@click.argument("instant", metavar="T")
@paged
@exportable
@at_a_place
def due(
    place: Place,
    output: Output,
    instant: str,
    after: str | None,
    limit: int | None,
    files: Files,
) -> None:
    """What the next-run index held at an instant, by the time at which it was due."""
    from horolog.application.answers.index_entry import IndexEntry

    moment = aware_instant("T", instant)
    with place.scheduler() as scheduler:
        # A page costs as much as all of it, so the largest there is.
        size = 10_000 if files else min(limit or SHOWN, 10_000)
        shown: list[IndexEntry] = []
        with output.progress("folding the log"):
            while found := scheduler.due_at(moment, after=after, limit=size):
                shown += found
                if not files or len(found) < size:
                    break
                after = str(found[-1].id)
    if files:
        files.write(output, shown, IndexEntry)
        return
    table = Table[IndexEntry](
        ["due", "kind", "name", "state", "fire time", "attempt", "id"],
        lambda entry: (
            entry.due_at, entry.kind, entry.name, entry.state, entry.fire_time, entry.attempt,
            str(entry.id),
        ),
        empty="nothing was due",
        whole=("id", "due"),
    )  # fmt: skip
    table.show_page(output, shown, limit)


def _choice(scheduler: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The options as keywords of the scheduler's questions."""
    job = given.pop("job")
    wanted = {name: value for name, value in given.items() if value is not None}
    for name in ("since", "until"):
        if name in wanted:
            wanted[name] = aware_instant(f"--{name}", wanted[name])
    if job is not None:
        wanted["job_id"] = job_id(scheduler, job)
    return wanted


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _three(values: Any) -> str:
    found = (values.p50, values.p95, values.p99)
    return "" if values.p50 is None else " / ".join(_seconds(value) for value in found)
