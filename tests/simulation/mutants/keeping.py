"""What is kept of the log, what is built from it, and who watches."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Any

from tests.simulation.mutants.mutant import Mutants, gives, method

from horolog.application.projecting.running import Running as RunningProjection
from horolog.application.rebuild.filling import Filling
from horolog.application.retention.scanning import Scan
from horolog.application.scanner.watching import Miss, ReadsMisses, Watching

KEEPING = Mutants()


@KEEPING.mutant("a pruning does not say where schedules stood")
def _(stack: ExitStack) -> None:
    method(stack, Scan, "_note_move", gives(None))


@KEEPING.mutant("a rebuild leaves out what was appended meanwhile")
def _(stack: ExitStack) -> None:
    method(stack, Filling, "last", gives(True))


@KEEPING.mutant("a projection passes over what it cannot apply at once")
def _(stack: ExitStack) -> None:
    method(stack, RunningProjection, "_try_again", gives(None))


@KEEPING.mutant("nobody notices that a job does not succeed any more", "nothing")
def _(stack: ExitStack) -> None:
    begin = Watching.__init__

    def of_runs(self: Any, territory: Any, *, misses: ReadsMisses, **rest: Any) -> None:
        begin(self, territory, misses=_OfRuns(misses), **rest)

    method(stack, Watching, "__init__", of_runs)


class _OfRuns:
    def __init__(self, misses: ReadsMisses) -> None:
        self._misses = misses

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        found = await self._misses.missed(after, limit)
        return [miss for miss in found if miss.deadline != "success"]
