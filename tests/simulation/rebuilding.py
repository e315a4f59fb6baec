"""The read models of a simulated world built anew while it runs.

The program is the real one, over the network, a few events at a time, so that the world goes on
between any two windows. The second set of tables is as Postgres keeps it: it is compared and
exchanged under the log lock, at which nothing else happens; an interrupted run leaves it, and the
next one goes on from there.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.judging import job_key, run_key
from tests.simulation.keeping import Keeping
from tests.simulation.network import BlockingWire

from horolog.application.rebuild.ports import Difference, Purpose, Run, State, Window
from horolog.domain.event import read_event
from horolog.domain.job import JobState
from horolog.domain.log_events import EventSkipped, OccurrencesPruned
from horolog.domain.occurrence import OccurrenceState
from horolog.infrastructure.simulated.states import SimulatedStates
from horolog.infrastructure.simulated.tables import IndexRow, Tables
from horolog.projections.changes import PROJECTIONS, VERSION, Changes, Standing

if TYPE_CHECKING:
    from tests.simulation.world import World

WINDOW = 25
"""Events in a window: few, so that there is always another one."""


@dataclass
class SecondSet:
    """The tables at the server."""

    world: "World"
    run: Run
    tables: Tables = field(default_factory=Tables)
    lives: dict[UUID, OccurrenceState] = field(default_factory=dict[UUID, OccurrenceState])

    def jobs(self, ids: Sequence[UUID]) -> Mapping[UUID, JobState]:
        holder: Any = SimpleNamespace(tables=self.tables)
        return SimulatedStates(holder).jobs(ids)

    def occurrences(self, ids: Sequence[UUID]) -> Mapping[UUID, OccurrenceState]:
        return {identity: self.lives[identity] for identity in ids if identity in self.lives}

    def window(self, after: int, limit: int) -> Window:
        events = [e for e in self.world.log.tables.events if e.position > after]
        count = min(limit, len(events))
        while (
            count
            and count < len(events)
            and (events[count].recorded_at == events[count - 1].recorded_at)
        ):
            count += 1
        rows = [
            (e.position, e.recorded_at, e.stream, e.version, e.topic, e.state, 0)
            for e in events[:count]
        ]
        return Window(rows, count, rows[-1][0] if rows else after, count < len(events))

    def end(self) -> int:
        return self.world.log.tables.last_position

    def write(self, changes: Changes) -> None:
        tables = self.tables
        for identity, change in changes.index.items():
            placed = change.placed() if isinstance(change, Standing) else change
            if placed is None:
                tables.next_runs.pop(identity, None)
            else:
                tables.next_runs[identity] = IndexRow(*placed)
        tables.jobs.update((i, dated.row) for i, dated in changes.jobs.items())
        for identity, ended in changes.executions.items():
            _put(tables.executions, identity, ended)
        for identity, letter in changes.dead_letters.items():
            _put(tables.dead_letters, identity, letter)
        self.lives.update(changes.occurrence_states)
        events = self.run.events + changes.events
        self.run = replace(self.run, position=changes.position, events=events)

    def differences(self) -> list[Difference]:
        ours, theirs = self.world.log.tables, self.tables
        pairs: list[tuple[str, Mapping[UUID, Any], Mapping[UUID, Any]]] = [
            (
                "next_runs",
                {i: run_key(row.run) for i, row in ours.next_runs.items()},
                {i: run_key(row.run) for i, row in theirs.next_runs.items()},
            ),
            (
                "jobs",
                {i: job_key(row) for i, row in ours.jobs.items()},
                {i: job_key(row) for i, row in theirs.jobs.items()},
            ),
            ("executions", ours.executions, theirs.executions),
            ("dead_letters", ours.dead_letters, theirs.dead_letters),
        ]
        return [
            Difference(name, str(i), {"row": used.get(i)}, {"row": built.get(i)})
            for name, used, built in pairs
            for i in sorted(used.keys() | built.keys())
            if used.get(i) != built.get(i)
        ]

    def put_to_use(self) -> None:
        used, built = self.world.log.tables, self.tables
        for identity, row in built.next_runs.items():
            before = used.next_runs.get(identity)
            # A look that was put off stays so: no event says it.
            if (
                before is not None
                and row.run.look
                and before.run.version == row.run.version
                and before.due_at > row.due_at
            ):
                built.next_runs[identity] = replace(row, due_at=before.due_at)
        used.written.update(used.next_runs, built.next_runs)
        for table in ("next_runs", "jobs", "executions", "dead_letters"):
            getattr(used, table).clear()
            getattr(used, table).update(getattr(built, table))
        news = "\n".join(f"{partition} 0 *" for partition in used.partitions)
        self.world.log.tell("due", news)


class WiredShadow:
    """As :class:`horolog.application.rebuild.ports.Shadow` promises, over a wire."""

    longest_hold_s = 0.0

    def __init__(self, second: SecondSet, link: BlockingWire) -> None:
        self._second = second
        self._wire = link
        self._locked = False

    @property
    def run(self) -> Run:
        return self._second.run

    def jobs(self, ids: Sequence[UUID]) -> Mapping[UUID, JobState]:
        return self._ask(lambda: self._second.jobs(ids))

    def occurrences(self, ids: Sequence[UUID]) -> Mapping[UUID, OccurrenceState]:
        return self._ask(lambda: self._second.occurrences(ids))

    def window(self, after: int, limit: int) -> Window:
        return self._ask(lambda: self._second.window(after, limit))

    def end(self) -> int:
        return self._ask(self._second.end)

    def write(self, changes: Changes) -> None:
        self._ask(lambda: self._second.write(changes))

    def finish(self) -> None:
        return

    def compare(self, last: Callable[[], bool]) -> Iterable[Difference] | None:
        return self._ask(lambda: self._second.differences() if self._under_lock(last) else None)

    def exchange(self, last: Callable[[], bool]) -> bool:
        def exchange() -> bool:
            if not self._under_lock(last):
                return False
            self._second.put_to_use()
            self.state("exchanged")
            return True

        return self._ask(exchange)

    def state(
        self, state: State, *, error: str | None = None, differences: int | None = None
    ) -> None:
        second = self._second
        second.run = replace(second.run, state=state, error=error, differences=differences)

    def _under_lock(self, last: Callable[[], bool]) -> bool:
        self._locked = True
        try:
            return last()
        finally:
            self._locked = False

    def _ask(self, work: Callable[[], Any]) -> Any:
        return work() if self._locked else self._wire(work)


class WiredRebuilds:
    """As :class:`horolog.application.rebuild.ports.Rebuilds` promises, as far as a rebuild goes."""

    def __init__(self, keeping: Keeping, link: BlockingWire) -> None:
        self._keeping = keeping
        self._link = link

    @contextmanager
    def begin(
        self, purpose: Purpose, projections: Sequence[str], *, actor: str, reason: str | None
    ) -> Generator[WiredShadow]:
        self._keeping.lock()
        try:
            second = self._keeping.second
            if second is None or second.run.state != "folding":
                now = self._keeping.world.now()
                run = _run(purpose, tuple(projections), actor, now)
                second = self._keeping.second = SecondSet(self._keeping.world, run)
            yield WiredShadow(second, self._link)
        finally:
            self._keeping.unlock()

    @contextmanager
    def kept(self) -> Generator[WiredShadow]:
        raise NotImplementedError
        yield

    def runs(self, limit: int) -> Sequence[Run]:
        raise NotImplementedError

    def pruned(self) -> Sequence[tuple[int, OccurrencesPruned]]:
        def ask() -> list[tuple[int, OccurrencesPruned]]:
            events = self._keeping.world.log.tables.events
            said = (
                (e.position, read_event(e.topic, e.state))
                for e in events
                if e.topic == OccurrencesPruned.topic
            )
            return [(at, event) for at, event in said if isinstance(event, OccurrencesPruned)]

        return self._link(ask)

    def skipped(self) -> Sequence[EventSkipped]:
        return []

    def event_at(self, position: int) -> tuple[UUID, int, str] | None:
        raise NotImplementedError


def _run(purpose: Purpose, projections: tuple[str, ...], actor: str, now: datetime) -> Run:
    names = projections or PROJECTIONS
    return Run(1, purpose, names, VERSION, "folding", 0, 0, None, None, actor, None, now, now)


def _put(table: dict[UUID, Any], identity: UUID, dated: tuple[Any, datetime] | None) -> None:
    if dated is None:
        table.pop(identity, None)
    else:
        table[identity] = dated[0]
