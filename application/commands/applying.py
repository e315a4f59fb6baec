"""Making a declared set of keyed jobs true: what is missing is registered, what differs is changed.

Everything that is declared is checked before anything is written. What is not named is left alone,
unless it is to be pruned; then it is cancelled. A set that is true already leaves no event.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from uuid import UUID

from horolog.application.answers.difference import Difference, FieldChange, JobChange
from horolog.application.commands.changing import cancel
from horolog.application.commands.context import Context
from horolog.application.commands.defining import checked_key, checked_schedule, define
from horolog.application.commands.differing import differing_fields
from horolog.application.commands.job_spec import JobSpec
from horolog.application.commands.registering import candidate, register, replacement
from horolog.application.commands.registering_many import register_many
from horolog.application.queries.ports import JobFilter, ListsJobs
from horolog.domain.errors import HorologError, InvalidPolicy, NotAllowed
from horolog.domain.ids import keyed_job_id
from horolog.domain.job import JobState, JobStatus

MAX_DECLARED = 100_000
PAGE = 1_000
_PRUNABLE: tuple[JobStatus, ...] = ("active", "paused")


@dataclass(frozen=True, slots=True)
class Pruning:
    """Which jobs are cancelled that are not declared: all keyed ones, or those with this label."""

    label: tuple[str, str | None] | None = None


@dataclass(slots=True)
class _Plan:
    """The declared set beside what there is."""

    created: list[JobSpec] = field(default_factory=list[JobSpec])
    changed: list[tuple[JobSpec, JobChange]] = field(
        default_factory=list[tuple[JobSpec, JobChange]]
    )
    unchanged: list[str] = field(default_factory=list[str])
    pruned: list[JobState] = field(default_factory=list[JobState])

    def difference(self) -> Difference:
        return Difference(
            tuple(spec.key or "" for spec in self.created),
            tuple(change for _, change in self.changed),
            tuple(self.unchanged),
            tuple(job.key or "" for job in self.pruned),
        )


def apply(
    context: Context,
    jobs: ListsJobs,
    specs: Iterable[JobSpec],
    *,
    pruning: Pruning | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> Difference:
    """Makes the set true and says what that took; with ``dry_run``, what it would take.

    Raises ``InvalidPolicy`` for a spec without a key, or with one that another spec has,
    ``NotAllowed`` where a key is that of a cancelled job, and what registering raises; the message
    begins with the spec's index. All of that before anything is written.
    """
    declared = list(islice(specs, MAX_DECLARED + 1))
    if len(declared) > MAX_DECLARED:
        raise InvalidPolicy(f"a declared set has at most {MAX_DECLARED} jobs: apply it in parts")
    plan = _planned(context, declared)
    if pruning is not None:
        named = {spec.key for spec in declared}
        plan.pruned = [job for job in _undeclared(jobs, pruning) if job.key not in named]
    if not dry_run:
        _carry_out(context, plan, reason)
    return plan.difference()


def _planned(context: Context, declared: Sequence[JobSpec]) -> _Plan:
    ids = _ids(context, declared)
    plan = _Plan()
    for first in range(0, len(declared), PAGE):
        present = context.states.jobs(ids[first : first + PAGE])
        for index in range(first, min(first + PAGE, len(declared))):
            try:
                _compare(context, declared[index], ids[index], present.get(ids[index]), plan)
            except HorologError as error:
                raise _at(index, error) from error
    return plan


def _ids(context: Context, declared: Sequence[JobSpec]) -> list[UUID]:
    found: dict[UUID, int] = {}
    for index, spec in enumerate(declared):
        if spec.key is None:
            raise _at(index, InvalidPolicy("it has no key: a declared job is known by its key"))
        try:
            identity = keyed_job_id(context.namespace, checked_key(spec.key))
        except HorologError as error:
            raise _at(index, error) from error
        if identity in found:
            twice = f"spec {found[identity]} has the key {spec.key!r} too: declare each job once"
            raise _at(index, InvalidPolicy(twice))
        found[identity] = index
    return list(found)


def _compare(
    context: Context, spec: JobSpec, job_id: UUID, present: JobState | None, plan: _Plan
) -> None:
    """Puts a spec where it belongs in the plan; raises what carrying it out would raise."""
    assert spec.key is not None
    if present is None:
        candidate(context, spec, job_id)
        plan.created.append(spec)
        return
    if present.status == "cancelled":
        raise NotAllowed(
            f"the key {spec.key!r} is that of job {job_id}, which was cancelled and does not come"
            " back: declare the job under another key"
        )
    wanted = define(spec, job_id, context.clock.now(), context.keyring, present.definition)
    stated = checked_schedule(spec.schedule).to_json()
    names = differing_fields(present.definition, wanted, stated)
    if not names:
        plan.unchanged.append(spec.key)
        return
    replacing = replace(spec, replace=True)
    replacement(context, replacing, present)
    old, new = present.definition.model_dump(mode="json"), wanted.model_dump(mode="json")
    fields = {name: FieldChange(old[name], new[name]) for name in names}
    plan.changed.append((replacing, JobChange(spec.key, job_id, fields)))


def _undeclared(jobs: ListsJobs, pruning: Pruning) -> Iterator[JobState]:
    """The living jobs that have a key, those of the pruning's label where it has one."""
    for status in _PRUNABLE:
        wanted = JobFilter(status=status, label=pruning.label)
        after: UUID | None = None
        while page := jobs.jobs(wanted, after=after, limit=PAGE):
            yield from (job for job in page if job.key is not None)
            after = page[-1].id


def _carry_out(context: Context, plan: _Plan, reason: str | None) -> None:
    def stated(spec: JobSpec) -> JobSpec:
        return spec if spec.reason is not None else replace(spec, reason=reason)

    for _ in register_many(context, [stated(spec) for spec in plan.created]):
        pass
    for spec, _change in plan.changed:
        register(context, stated(spec))
    for job in plan.pruned:
        cancel(context, job.id, reason=reason or "it is no longer declared")


def _at(index: int, error: HorologError) -> HorologError:
    """The same refusal, with the index of the spec in front."""
    return type(error)(f"spec {index}: {error}")
