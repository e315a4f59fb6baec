"""What a worker keeps in the log's database, in memory: leases of attempts, presence, counts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from horolog.application.worker.heartbeats import Extended
from horolog.infrastructure.simulated.links import BlockingLink, at_once
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedAttemptLeases:
    """As :class:`horolog.application.worker.heartbeats.ExtendsLeases` promises."""

    def __init__(self, log: SimulatedLog, link: BlockingLink = at_once) -> None:
        self._log = log
        self._tables = log.tables
        self._link = link

    def extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended:
        asked = list(attempts)
        return self._link(lambda: self._extend(asked, lease_s))

    def _extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended:
        until = self._log.now() + timedelta(seconds=lease_s)
        held: list[UUID] = []
        cancelled: list[UUID] = []
        for identity, number in attempts:
            row = self._tables.next_runs.get(identity)
            if row is None or row.run.attempt != number:
                continue
            if row.run.state not in ("running", "stopping"):
                continue
            held.append(identity)
            self._tables.next_runs[identity] = replace(row, due_at=until)
            self._tables.written.add(identity)
            job = self._tables.jobs.get(row.run.job_id)
            if row.run.state == "stopping" or (job is not None and job.status == "cancelled"):
                cancelled.append(identity)
        return Extended(frozenset(held), frozenset(cancelled))


class SimulatedPresence:
    """As :class:`horolog.application.worker.heartbeats.AnnouncesWorker` promises."""

    def __init__(self, link: BlockingLink = at_once) -> None:
        self.alive = False
        self._link = link

    def announce(self, details: dict[str, Any], for_s: float) -> None:
        del details, for_s
        self._link(lambda: self._set(alive=True))

    def leave(self) -> None:
        self._link(lambda: self._set(alive=False))

    def _set(self, *, alive: bool) -> None:
        self.alive = alive


class SimulatedCounts:
    """As :class:`horolog.application.worker.counting.RecordsCounts` promises."""

    def __init__(self, log: SimulatedLog, link: BlockingLink = at_once) -> None:
        self._counters = log.tables.counters
        self._link = link

    def add(self, counts: Mapping[str, int]) -> None:
        added = dict(counts)

        def add() -> None:
            for name, number in added.items():
                self._counters[name] = self._counters.get(name, 0) + number

        self._link(add)
