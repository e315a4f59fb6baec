"""Registering many jobs: lazily, in bounded batches, one transaction for each."""

import gc
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from uuid import UUID

from horolog.application.commands.alike import Alike
from horolog.application.commands.context import Context
from horolog.application.commands.defining import checked_key
from horolog.application.commands.job_spec import JobSpec
from horolog.application.commands.registering import Candidate, candidate, register, replacement
from horolog.domain.errors import HorologError, InvalidPolicy
from horolog.domain.ids import keyed_job_id
from horolog.domain.job import JobState

MAX_BATCH = 10_000


def register_many(
    context: Context, specs: Iterable[JobSpec], *, batch: int = 1000
) -> Iterator[JobState]:
    """The jobs of ``specs``, in order and lazily, one transaction for each ``batch`` of them.

    What one spec is refused for is raised, with its index in the message, before anything of its
    batch is written; the batches before it stay.
    """
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidPolicy(f"batch={batch}: a batch holds from 1 to {MAX_BATCH} jobs")
    remaining = iter(specs)
    first_index = 0
    alike = Alike()
    while chunk := list(islice(remaining, batch)):
        alike.begin(context.clock.now())
        yield from _register_batch(context, chunk, first_index, alike)
        first_index += len(chunk)


def _register_batch(
    context: Context, specs: Sequence[JobSpec], first_index: int, alike: Alike
) -> Iterator[JobState]:
    keyed = _keyed_ids(context, specs, first_index)
    present = context.states.jobs([job_id for job_id in keyed if job_id is not None])
    born: dict[int, Candidate] = {}
    again: list[int] = []
    with _uncollected():
        for number, (spec, job_id) in enumerate(zip(specs, keyed, strict=True)):
            try:
                meets = None if job_id is None else present.get(job_id)
                if meets is not None:
                    replacement(context, spec, meets)
                    again.append(number)
                    continue
                born[number] = new = candidate(context, spec, job_id, alike)
                if job_id is not None:
                    present[job_id] = new.state
            except HorologError as error:
                raise _at(first_index + number, error) from error
    states = _append_born(context, born)
    for number in again:
        states[number] = register(context, specs[number])
    yield from (states[number] for number in range(len(specs)))


@contextmanager
def _uncollected() -> Generator[None]:
    """Without garbage collection: what a batch makes, it keeps, and the collector would go through
    all of it some thirty times. A batch has a bound, so what others leave meanwhile has one too."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _keyed_ids(context: Context, specs: Sequence[JobSpec], first_index: int) -> list[UUID | None]:
    ids: list[UUID | None] = []
    for index, spec in enumerate(specs, first_index):
        try:
            key = None if spec.key is None else checked_key(spec.key)
        except HorologError as error:
            raise _at(index, error) from error
        ids.append(None if key is None else keyed_job_id(context.namespace, key))
    return ids


def _append_born(context: Context, born: dict[int, Candidate]) -> dict[int, JobState]:
    """Appends the new jobs in one transaction; whoever lost a race for a key meets the winner."""
    states = {number: new.state for number, new in born.items()}
    if born:
        appended = context.log.append([new.decision for new in born.values()])
        for (number, new), verdict in zip(born.items(), appended.verdicts, strict=True):
            if verdict != "accepted":
                states[number] = register(context, new.spec)
    return states


def _at(index: int, error: HorologError) -> HorologError:
    """The same refusal, with the index of the spec in front."""
    return type(error)(f"spec {index}: {error}")
