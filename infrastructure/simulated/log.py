"""The log in memory: guards, fences, verdicts and rows as on Postgres, under one lock as there."""

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock
from uuid import UUID

from horolog.application.decision import Decision, Guard
from horolog.application.log import Appended, Fences, Recorded, Verdict
from horolog.domain.errors import VersionConflict
from horolog.domain.event import read_event
from horolog.domain.occurrence_events import Claimed
from horolog.infrastructure.simulated.lanes import (
    refuse_full,
    release_slots,
    take_slots,
    waits,
    wake,
)
from horolog.infrastructure.simulated.news import news_of
from horolog.infrastructure.simulated.subjects import forget_subjects
from horolog.infrastructure.simulated.tables import (
    LONG_AGO,
    IndexRow,
    StoredEvent,
    Tables,
    empty_tables,
)

Listener = Callable[[str, str], None]


class SimulatedLog:
    """Appends decisions and reads events back; shared by threads.

    ``now`` is the clock that the log stamps events by and measures leases with. ``tables`` is what
    the log holds: to be looked at, and written by appends alone. ``keeps_lanes``: what waits in a
    lane stays there until it is claimed, for a scanner that serves lanes; otherwise a slot that
    becomes free brings all that waits back among the fires.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        *,
        namespace: str = "simulated",
        partitions: int = 64,
        keeps_lanes: bool = False,
    ) -> None:
        self.tables = empty_tables(namespace, partitions)
        self.now = now
        self.listeners: list[Listener] = []
        """Told of news, by the name of their channel: "due", "stop", "log"."""
        self._keeps_lanes = keeps_lanes
        self._lock = Lock()

    def tell(self, channel: str, payload: str) -> None:
        """News for whoever listens."""
        for listener in self.listeners:
            listener(channel, payload)

    def freed(self, lane: str) -> None:
        """A slot of the lane is free, or its limit was changed."""
        if not self._keeps_lanes:
            wake(self.tables, lane)
        elif waits(self.tables, lane):
            self.tell("due", f"lane {json.dumps(lane)}")

    def append(
        self,
        decisions: Sequence[Decision],
        fences: Fences | None = None,
        *,
        news_horizon_s: float = 60.0,
    ) -> Appended:
        """As :class:`horolog.application.log.AppendsToLog` promises. What it makes due within
        ``news_horizon_s`` is told."""
        with self._lock:
            stamp = self.now()
            verdicts = self._verdicts(decisions, fences, stamp)
            refuse_full(self.tables, decisions, verdicts, stamp)
            self._refuse_taken_keys(decisions, verdicts)
            accepted = [d for d, v in zip(decisions, verdicts, strict=True) if v == "accepted"]
            forget_subjects(self.tables, accepted)
            for decision in accepted:
                for new in decision.events:
                    topic, state = new.event.topic, new.state()
                    self.tables.record(stamp, new.stream, new.version, topic, state)
            _write_index(self.tables, accepted, stamp)
            _write_others(self.tables, accepted, stamp)
            freed = release_slots(self.tables, accepted)
            take_slots(self.tables, accepted, stamp)
            appended = Appended(verdicts, self.tables.last_position, stamp)
        for lane in freed:
            self.freed(lane)
        if self.listeners:
            for channel, payload in news_of(accepted, stamp, news_horizon_s):
                self.tell(channel, payload)
        return appended

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        with self._lock:
            events = self.tables.streams.get(stream, [])
            found = [event for event in events if event.version > after][:limit]
        return [_recorded(event) for event in found]

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        """As :class:`horolog.application.log.ReadsLog` promises."""
        found: list[StoredEvent] = []
        with self._lock:
            events = self.tables.events
            start = bisect_right(events, after, key=lambda event: event.position)
            for index in range(start, len(events)):
                if len(found) == limit:
                    break
                if not topics or events[index].topic in topics:
                    found.append(events[index])
        return [_recorded(event) for event in found]

    def _verdicts(
        self, decisions: Sequence[Decision], fences: Fences | None, stamp: datetime
    ) -> list[Verdict]:
        stale = self._stale_partitions(fences)
        instance = None if fences is None else fences.instance
        verdicts: list[Verdict] = []
        for decision in decisions:
            if decision.partition in stale:
                verdicts.append("stale")
            elif self._holds(decision.guard, instance, stamp) and (
                fences is None or self._knows_the_job(decision)
            ):
                verdicts.append("accepted")
            else:
                verdicts.append("conflict")
        if stale:
            counters = self.tables.counters
            refused = verdicts.count("stale")
            counters["stale_claims_refused"] = counters.get("stale_claims_refused", 0) + refused
        self._refuse_beaten(decisions, verdicts)
        return verdicts

    def _stale_partitions(self, fences: Fences | None) -> set[int]:
        """The fenced partitions that the instance does not lead under its token any more."""
        if fences is None:
            return set()
        rows = self.tables.partitions
        return {
            number
            for number, token in fences.tokens.items()
            if number not in rows
            or (rows[number].instance, rows[number].token) != (fences.instance, token)
        }

    def _holds(self, guard: Guard, instance: str | None, stamp: datetime) -> bool:
        match guard.kind:
            case "nothing":
                return True
            case "next_run":
                row = self.tables.next_runs.get(guard.id)
                return (
                    row is not None
                    and row.run.version == guard.version
                    # Without a due time it speaks of an occurrence.
                    and (row.due_at == guard.due if guard.due else row.run.kind != "job")
                    and guard.state in (None, row.run.state)
                    and guard.attempt in (None, row.run.attempt)
                )
            case "job":
                job, row = self.tables.jobs.get(guard.id), self.tables.next_runs.get(guard.id)
                fire = None if row is None else row.run.fire_time
                version = 0 if job is None else job.version
                return version == guard.version and guard.due in (None, fire)
            case "partition":
                return any(
                    led.stream == guard.id
                    and led.version == guard.version
                    and (led.instance in (None, instance) or led.lease_until < stamp)
                    for led in self.tables.partitions.values()
                )

    def _knows_the_job(self, decision: Decision) -> bool:
        """Whether a leader's claims were decided from the job as it is. Of an earlier definition's
        runs, and of fire times, whose guard is the job's own row, nothing is asked."""
        return decision.guard.due is not None or all(
            new.event.definition_version is not None
            or (job := self.tables.jobs.get(new.event.job_id)) is None
            or job.version == new.event.job_version
            for new in decision.events
            if isinstance(new.event, Claimed)
        )

    def _refuse_beaten(self, decisions: Sequence[Decision], verdicts: list[Verdict]) -> None:
        """Refuses what wants a place that an event in the log, or before it in the batch, has."""
        for number, decision in enumerate(decisions):
            if verdicts[number] == "accepted":
                places = {(new.stream, new.version) for new in decision.events}
                if places & self.tables.places or len(places) < len(decision.events):
                    verdicts[number] = "conflict"
        wanted: set[tuple[UUID, int]] = set()
        for number, decision in enumerate(decisions):
            if verdicts[number] == "accepted":
                places = {(new.stream, new.version) for new in decision.events}
                if places & wanted:
                    verdicts[number] = "conflict"
                wanted |= places

    def _refuse_taken_keys(self, decisions: Sequence[Decision], verdicts: list[Verdict]) -> None:
        """A key is one job's: the whole batch is refused, as by the index that Postgres keeps."""
        holders = {job.key: job.id for job in self.tables.jobs.values() if job.key is not None}
        for decision, verdict in zip(decisions, verdicts, strict=True):
            for job in decision.jobs:
                if (
                    verdict == "accepted"
                    and job.key is not None
                    and holders.setdefault(job.key, job.id) != job.id
                ):
                    raise VersionConflict(
                        f"another job has the key {job.key!r}: read again and decide anew"
                    )


def _write_index(tables: Tables, accepted: Sequence[Decision], stamp: datetime) -> None:
    """What leaves the index, then what enters it, as the database does it for a whole batch."""
    for identity in (identity for decision in accepted for identity in decision.dropped):
        tables.next_runs.pop(identity, None)
    for run in (run for decision in accepted for run in decision.next_runs):
        due_at = run.due_at if run.due_at is not None else stamp + _seconds(run.look_after_s)
        tables.next_runs[run.id] = IndexRow(run, due_at, tables.last_position)
        tables.written.add(run.id)


def _write_others(tables: Tables, accepted: Sequence[Decision], stamp: datetime) -> None:
    for decision in accepted:
        tables.executions.update((row.id, row) for row in decision.executions)
        tables.jobs.update((row.id, row) for row in decision.jobs)
        for move in decision.job_moves:
            tables.jobs[move.id] = replace(
                tables.jobs[move.id],
                version=move.version,
                status=move.status,
                fires=move.fires,
                held_fire=None,
            )
        tables.dead_letters.update((row.id, row) for row in decision.dead_letters)
    for decision in accepted:
        for identity in decision.revived:
            tables.dead_letters.pop(identity, None)
            tables.executions.pop(identity, None)
        for identity in decision.discarded:
            tables.dead_letters.pop(identity, None)
        for leader in decision.leaders:
            row = tables.partitions[leader.partition]
            row.version, row.instance, row.token = leader.version, leader.instance, leader.token
            led_until = stamp + _seconds(leader.lease_s)
            row.lease_until = LONG_AGO if leader.instance is None else led_until


def _seconds(count: float | None) -> timedelta:
    assert count is not None, "a row of the index has a due time or a look after some seconds"
    return timedelta(seconds=count)


def _recorded(event: StoredEvent) -> Recorded:
    where = f"at position {event.position} ({event.stream}:{event.version})"
    fact = read_event(event.topic, event.state, where=where)
    return Recorded(event.position, event.recorded_at, event.stream, event.version, fact)
