"""What a run is judged by: invariants of the log, rebuilt projections, the model, the witness."""

from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from tests.simulation.model.check import check

from horolog.application.verify import Report, verify
from horolog.infrastructure.simulated.log_scan import SimulatedLogScan
from horolog.projections.changes import Changes, Placed
from horolog.projections.fold import fold_window

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(frozen=True)
class Judgement:
    """``problems`` is empty where all is well."""

    problems: list[str]
    report: Report


def judge(world: "World") -> Judgement:
    """Everything that can be said against a run that is over."""
    problems = list(world.problems)
    report = verify(SimulatedLogScan(world.log))
    problems += [str(violation) for violation in report.violations]
    problems += projections(world)
    problems += world.keeping.problems()
    problems += world.view.problems(world.keeping.history(), world.now(), world.plan.tempo)
    if world.rested_at is None:
        # The model asks what became of everything: there is no saying before all is at rest.
        problems.append("the world never came to rest, so the model was not asked")
        return Judgement(problems, report)
    try:
        problems += check(world)
    except (KeyError, AssertionError, StopIteration, IndexError) as error:
        problems.append(f"the model cannot read the log: {told(error)}")
    return Judgement(problems, report)


def told(error: Exception) -> str:
    """An error by its class, what it says, and the line that raised it: an assertion says nothing,
    and a missing key only itself."""
    last = extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}, {last.line}"
    return f"{type(error).__name__}: {error} ({place})"


class _Nothing:
    """As :class:`horolog.projections.changes.KnowsBefore` promises, before the first event."""

    def jobs(self, ids: Any) -> dict[Any, Any]:
        return {}

    def occurrences(self, ids: Any) -> dict[Any, Any]:
        return {}


def projections(world: "World") -> list[str]:
    """What the rows that were written beside the events differ in from those folded from them."""
    tables = world.log.tables
    rows = [
        (e.position, e.recorded_at, e.stream, e.version, e.topic, e.state, 0) for e in tables.events
    ]
    try:
        pruned = SimulatedLogScan(world.log).pruned()
        folded: Changes = fold_window(rows, 0, _Nothing(), pruned=pruned)
    except Exception as error:  # noqa: BLE001 - whatever it is, the projections cannot be rebuilt
        return [f"the projections cannot be rebuilt: {type(error).__name__}: {error}"]
    found: list[str] = []
    index = {i: placed.row for i, placed in folded.index.items() if isinstance(placed, Placed)}
    kept = {i: row.run for i, row in tables.next_runs.items()}
    for identity in index.keys() | kept.keys():
        ours, theirs = kept.get(identity), index.get(identity)
        if ours is None or theirs is None or run_key(ours) != run_key(theirs):
            found.append(f"the index has {ours} of {identity}, and the log says {theirs}")
    jobs = {i: dated.row for i, dated in folded.jobs.items()}
    for identity in jobs.keys() | tables.jobs.keys():
        ours, theirs = tables.jobs.get(identity), jobs.get(identity)
        if ours is None or theirs is None or job_key(ours) != job_key(theirs):
            found.append(f"the jobs have {ours} of {identity}, and the log says {theirs}")
    letters = {i for i, letter in folded.dead_letters.items() if letter is not None}
    if letters != set(tables.dead_letters):
        found.append(f"the dead letters differ in {letters ^ set(tables.dead_letters)}")
    executions = {i: x[0].state for i, x in folded.executions.items() if x is not None}
    if executions != {i: x.state for i, x in tables.executions.items()}:
        found.append("the executions differ from those that the log says")
    return found


def run_key(run: Any) -> tuple[Any, ...]:
    return (
        run.job_id, run.partition, run.look, run.state, run.kind, run.version, run.fire_time,
        run.attempt, run.failures, run.fires,
    )  # fmt: skip


def job_key(row: Any) -> tuple[Any, ...]:
    return (row.key, row.version, row.status, row.partition, row.name, row.queue, row.definition)
