"""Deadlines and alerts in a simulated world: what scanners look at, and who is told.

What is seen is what the database's functions see (migrations/0025 and 0009), counted from the rows
in memory. Who is told takes some notices and refuses others, and remembers all.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import takewhile
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from pydantic_core import from_json
from tests.simulation.network import Wire

from horolog.application.alerting.ports import Letters, NotDelivered, Seen
from horolog.application.alerting.rules import AlertRule, streams_of
from horolog.application.scanner.watching import Miss, whole
from horolog.domain.alert import AlertState, evolve
from horolog.domain.alert_events import AlertWay
from horolog.domain.event import read_event
from horolog.domain.log_events import DeadlineKind
from horolog.infrastructure.simulated.tables import StoredEvent

if TYPE_CHECKING:
    from tests.simulation.world import World

OWNER = "simulated"
NAMESPACE = "simulated"
REFUSED = 0.2
"""How many of the notices whoever is told does not take."""


class Deadlines(NamedTuple):
    """What a definition states, in seconds."""

    start_s: float | None
    finish_s: float | None
    success_s: float | None


@dataclass
class Watchfulness:
    """What may be seen at the server, and what was told."""

    world: "World"
    told: Counter[str] = field(default_factory=Counter[str])
    """Notices that were taken, by their ids."""
    _deadlines: dict[str, Deadlines] = field(default_factory=dict[str, Deadlines])

    @cached_property
    def rule(self) -> AlertRule:
        tempo = self.world.plan.tempo
        return AlertRule(
            owner=OWNER,
            dead_letters=1 + self.world.plan.seed % 3,
            deadlines=True,
            repeat=600.0 * tempo,
            webhook="http://nowhere",
        )

    def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        now = self.world.now()
        found = [miss for miss in self._misses(now) if after < miss.due <= now]
        found.sort(key=lambda miss: (miss.due, miss.job_id, miss.deadline))
        return whole(found, limit)

    def seen(self) -> Seen:
        tables, now = self.world.log.tables, self.world.now()
        letters = [self._ended(identity).recorded_at for identity in tables.dead_letters]
        lately = takewhile(
            lambda event: now - event.recorded_at < timedelta(seconds=60), reversed(tables.events)
        )
        late = sum(1 for miss in self._misses(now) if miss.due <= now) or sum(
            event.topic == "deadline.missed.1" for event in lately
        )
        return Seen(
            now=now,
            partitions=len(tables.partitions),
            rules=[self.rule],
            letters=[Letters(OWNER, len(letters), min(letters))] if letters else [],
            late={OWNER: late} if late else {},
            alerts={state.stream: state for state in self.alerts()},
        )

    def alerts(self) -> Iterator[AlertState]:
        for stream in streams_of(NAMESPACE, OWNER):
            state: AlertState | None = None
            for stored in self.world.log.tables.streams.get(stream, []):
                event: Any = read_event(stored.topic, stored.state)
                if stored.topic.startswith("alert."):
                    before = state or AlertState(stream, event.condition, OWNER)
                    state = evolve(before, stored.version, stored.recorded_at, event)
            if state is not None:
                yield state

    def _misses(self, now: datetime) -> Iterator[Miss]:
        tables = self.world.log.tables
        for row in tables.next_runs.values():
            run = row.run
            start_s, finish_s, _ = self._of(run.job_id)
            if run.kind == "backfill":
                continue
            identity = None if run.kind == "job" else run.id
            waits = run.attempt == 0 or (run.attempt == 1 and run.state == "claimed")
            if start_s is not None and waits:
                yield self._miss("start", run.job_id, identity, run.fire_time, start_s)
            if finish_s is not None:
                yield self._miss("finish", run.job_id, identity, run.fire_time, finish_s)
        lately = timedelta(seconds=60.0 * self.world.plan.tempo)
        for one in tables.executions.values():
            finish_s = self._of(one.job_id).finish_s
            if finish_s is None or one.kind == "backfill" or one.state == "discarded":
                continue
            ended = self._ended(one.id).recorded_at
            if ended > one.fire_time + timedelta(seconds=finish_s) and ended > now - lately:
                yield self._miss("finish", one.job_id, one.id, one.fire_time, finish_s)

        yield from self._without_success()

    def _without_success(self) -> Iterator[Miss]:
        """Jobs of which nothing has succeeded for too long."""
        tables = self.world.log.tables
        for job in tables.jobs.values():
            success_s = self._of(job.id).success_s
            if success_s is None or job.status != "active":
                continue
            since = [tables.streams[job.id][0].recorded_at]
            since += [
                self._ended(one.id).recorded_at
                for one in tables.executions.values()
                if one.job_id == job.id and one.state == "succeeded"
            ]
            if job.id in self.world.keeping.succeeded:
                since.append(self.world.keeping.succeeded[job.id])
            if len(since) == 1 and self.world.keeping.pruned_until is not None:
                # What has left the log may have been a success.
                since.append(self.world.keeping.pruned_until)
            due = max(since) + timedelta(seconds=success_s)
            yield Miss("success", job.id, job.name, OWNER, due, None, None)

    def _miss(
        self, kind: DeadlineKind, job: UUID, run: UUID | None, fire: datetime, within_s: float
    ) -> Miss:
        name = self.world.log.tables.jobs[job].name
        return Miss(kind, job, name, OWNER, fire + timedelta(seconds=within_s), run, fire)

    def _of(self, job: UUID) -> Deadlines:
        definition = self.world.log.tables.jobs[job].definition
        known = self._deadlines.get(definition)
        if known is None:
            stated = from_json(definition)
            names = ("start_within", "finish_within", "expect_success_by")
            known = Deadlines(*(stated.get(name) for name in names))
            self._deadlines[definition] = known
        return known

    def _ended(self, identity: UUID) -> StoredEvent:
        return self.world.log.tables.streams[identity][-1]


class WiredMisses:
    """As :class:`horolog.application.scanner.watching.ReadsMisses` promises."""

    def __init__(self, watchfulness: Watchfulness, wire: Wire) -> None:
        self._watchfulness = watchfulness
        self._wire = wire

    async def missed(self, after: datetime, limit: int) -> Sequence[Miss]:
        return await self._wire(lambda: self._watchfulness.missed(after, limit))


class WiredAlerts:
    """As :class:`SeesAlerts` and :class:`DeliversNotices` promise."""

    def __init__(self, watchfulness: Watchfulness, wire: Wire) -> None:
        self._watchfulness = watchfulness
        self._wire = wire
        self._random = Random(f"notices {wire.process.name} {wire.world.plan.seed}")

    async def seen(self) -> Seen:
        return await self._wire(self._watchfulness.seen)

    async def deliver(self, rule: AlertRule, way: AlertWay, notice: Mapping[str, Any]) -> None:
        del rule, way
        if self._random.random() < REFUSED:
            raise NotDelivered("nobody is there")
        # It is told at once; that it was told becomes known a moment later, or never.
        self._watchfulness.told[notice["id"]] += 1
        await asyncio.sleep(self._wire.delay_s())
