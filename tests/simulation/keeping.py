"""What an operator does to the log of a simulated world while it runs: prune it, build it anew.

The programs are the real ones, over the network. What they work on is as Postgres keeps it: a
"month" is a stretch of the plan, so that some of them are old before it ends. What leaves is
remembered: the model judges all that ever happened.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

from tests.simulation.network import Blocking, BlockingWire

from horolog.application.rebuild.skipping import append_to_log_stream
from horolog.application.retention.ports import Archived, Farewell, Month
from horolog.application.verify.hash_chain import Link
from horolog.application.verify.ports import StoredEvent as KeptEvent
from horolog.domain.errors import NotAllowed
from horolog.domain.ids import EPOCH, fire_time_floor
from horolog.domain.log_events import OccurrencesPruned
from horolog.infrastructure.simulated.log_scan import SimulatedLogScan
from horolog.infrastructure.simulated.tables import StoredEvent

if TYPE_CHECKING:
    from tests.simulation.rebuilding import SecondSet
    from tests.simulation.world import World

NAMESPACE = "simulated"
MONTH_UNITS = 60.0


@dataclass
class Keeping:
    """At the server: which months there were, what has left, and the archive."""

    world: "World"
    left: list[StoredEvent] = field(default_factory=list[StoredEvent])
    archived: dict[str, list[KeptEvent]] = field(default_factory=dict[str, list[KeptEvent]])
    pruned: int = 0
    """How many months have left."""
    busy: bool = False
    left_at: dict[datetime, datetime] = field(default_factory=dict[datetime, datetime])
    """Up to where months have left: when each of them did."""
    succeeded: dict[UUID, datetime] = field(default_factory=dict[UUID, datetime])
    """When the last success came of each job among what has left; of all jobs, where Postgres asks
    only for those that expect any."""
    second: "SecondSet | None" = None

    @property
    def pruned_until(self) -> datetime | None:
        return max(self.left_at, default=None)

    def history(self) -> list[StoredEvent]:
        """Everything that was ever in the log, in its order."""
        return sorted([*self.left, *self.world.log.tables.events], key=lambda e: e.position)

    def problems(self) -> list[str]:
        """What has left must be in the archive as it was, and nothing may be there twice."""
        kept = {
            (e.position, e.stream, e.version, e.topic, e.state)
            for events in self.archived.values()
            for e in events
        }
        gone = {(e.position, e.stream, e.version, e.topic, bytes(e.state)) for e in self.left}
        found = [f"{event[:4]} was pruned, and is in no archive" for event in gone - kept]
        places = [(e.stream, e.version) for e in self.history()]
        if len(places) != len(set(places)):
            found.append("an event has the place of one that was pruned")
        return found

    # As horolog.application.retention.ports.Months promises.

    def lock(self) -> None:
        if self.busy:
            raise NotAllowed("somebody else prunes or rebuilds")
        self.busy = True

    def unlock(self) -> None:
        self.busy = False

    def older_than(self, moment: datetime) -> list[Month]:
        length = timedelta(seconds=MONTH_UNITS * self.world.plan.tempo)
        first = self.world.plan.start - length  # what is backfilled reaches back behind the start
        months: list[Month] = []
        number = self.pruned
        while (until := first + length * (number + 1)) <= moment:
            months.append(self._month(first + length * number, until))
            number += 1
        staying = next((m.since for m in months if m.hindrance is not None), None)
        until = staying or first + length * number
        rest = self._month(EPOCH, first + length * self.pruned if months else until, rest=True)
        return [rest, *months] if rest.events or rest.executions else months

    def _month(self, since: datetime, until: datetime, *, rest: bool = False) -> Month:
        tables, kept = self.world.log.tables, self._unresolved(since, until)
        low, high = fire_time_floor(since), fire_time_floor(until)
        events = [e for e in self._within(low, high) if e.stream not in kept]
        executions = sum(low <= i < high and i not in kept for i in tables.executions)
        last = events[-1].position if events else 0
        place = self.world.view.place
        behind = place is not None and place < last
        return Month(
            since,
            until,
            len({e.stream for e in events}),
            len(events),
            executions,
            events[0].position if events else 0,
            last,
            tuple(sorted(kept)),
            hindrance="a follower has not seen it all" if behind else None,
            rest=rest,
        )

    def _within(self, low: UUID, high: UUID) -> list[StoredEvent]:
        return [
            e
            for e in self.world.log.tables.events
            if e.topic.startswith("occurrence.") and low <= e.stream < high
        ]

    def _unresolved(self, since: datetime, until: datetime) -> set[UUID]:
        tables, low, high = self.world.log.tables, fire_time_floor(since), fire_time_floor(until)
        open_ = {i for i, row in tables.next_runs.items() if row.run.kind != "job"}
        return {i for i in open_ | set(tables.dead_letters) if low <= i < high}

    def page(self, after: int, limit: int) -> Sequence[KeptEvent]:
        return [event.stored() for event in SimulatedLogScan(self.world.log).page(after, limit)]

    def links(self, after: int, limit: int) -> Sequence[Link]:
        """An append is what was recorded at one instant. A simulated log has no hashes."""
        found: list[Link] = []
        for _, group in groupby(self.world.log.tables.events, key=lambda e: e.recorded_at):
            events = list(group)
            first, last = events[0].position, events[-1].position
            if last > after:
                found.append(Link(last, first, len(events), b"", b"", None))
        return found[:limit]

    def drop(self, farewell: Farewell) -> bool:
        month, tables = farewell.month, self.world.log.tables
        low, high = fire_time_floor(month.since), fire_time_floor(month.until)
        late = {e.stream for e in self._within(low, high) if e.position > farewell.until_position}
        kept = {*month.kept, *self._unresolved(month.since, month.until), *late}
        going = [e for e in self._within(low, high) if e.stream not in kept]
        gone = {e.position for e in going}
        tables.events[:] = [e for e in tables.events if e.position not in gone]
        for event in going:
            tables.streams.pop(event.stream, None)
            tables.places.discard((event.stream, event.version))
        for identity in [i for i in tables.executions if low <= i < high and i not in kept]:
            one = tables.executions.pop(identity)
            if one.state == "succeeded":
                ended = next(e.recorded_at for e in reversed(going) if e.stream == identity)
                self.succeeded[one.job_id] = max(
                    ended, self.succeeded.get(one.job_id, self.world.plan.start)
                )
        self.left += going
        if farewell.account:
            last = farewell.account[-1].model_copy(update={"kept": sorted(kept)})
            append_to_log_stream(self.world.log, NAMESPACE, [last])
        if not month.rest:
            self.pruned += 1
            self.left_at[month.until] = self.world.now()
        return True


class WiredMonths(Blocking):
    """The same, as the program has it."""

    def __init__(self, keeping: Keeping, link: BlockingWire) -> None:
        super().__init__(keeping, link)
        self._keeping = keeping

    @contextmanager
    def alone(self) -> Generator[None]:
        self._keeping.lock()
        try:
            yield
        finally:
            self._keeping.unlock()

    def say(self, events: Sequence[OccurrencesPruned]) -> None:
        self._link(lambda: append_to_log_stream(self._keeping.world.log, NAMESPACE, list(events)))

    def tidy(self) -> None:
        return


class Archive:
    """As :class:`horolog.application.retention.ports.Archive` promises."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping

    def write(self, name: str, events: Iterable[KeptEvent]) -> Archived:
        written = list(events)
        self._keeping.archived[name] = written
        return Archived(name, "0" * 64, len(written))
