"""The one leader of a simulated namespace: claims what is due, as the scanner decides it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.decision import decide_on_partition
from horolog.application.log import AppendsToLog, Fences
from horolog.application.ready import ReadyRun, ready_run
from horolog.application.scanner.deciding import (
    Fired,
    Later,
    Proposal,
    Terms,
    decide_job,
    decide_occurrence,
    decide_others,
    others_of,
)
from horolog.application.states import DueJob, DueOccurrence, ReadsDue, ReadsStates
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.origin import Origin
from horolog.domain.partition import PartitionState, decide_election

INSTANCE = "simulated"
WINDOW_S = 30.0
LEASE_S = 10.0


class ReadsRows(ReadsDue, ReadsStates, Protocol):
    """What is due, and what is unfinished."""


class ReadsFires(Protocol):
    """The fires of the next-run index, without its looks. Errors: none."""

    def fires(self, until: datetime) -> Sequence[UUID]:
        """Those that are due at ``until`` or before, in the order of their due times."""
        ...

    def next_fire(self, after: datetime) -> datetime | None:
        """When the first of them is due that is due later than ``after``."""
        ...

    def known(self, ids: Sequence[UUID]) -> set[UUID]:
        """Those of the occurrences that have events in the log."""
        ...


class Leading:
    """Leads all ``partitions`` of the namespace, from its first look on and for ever."""

    def __init__(
        self,
        log: AppendsToLog,
        states: ReadsRows,
        index: ReadsFires,
        *,
        namespace: str,
        partitions: int,
    ) -> None:
        self._log = log
        self._states = states
        self._index = index
        self._namespace = namespace
        self._partitions = partitions
        self._origin = Origin(actor=f"scanner {INSTANCE}")
        self._tokens: dict[int, int] = {}
        self._waiting: dict[UUID, datetime | None] = {}
        self._not_before: dict[UUID, datetime] = {}
        self._refused: set[UUID] = set()

    def claim(self, now: datetime) -> tuple[bool, list[ReadyRun]]:
        """Decides on what is due at ``now``: whether the log moved on, and the runs claimed."""
        self._lead()
        due = [id_ for id_ in self._index.fires(now) if self._not_before.get(id_, now) <= now]
        if not due:
            return False, []
        terms = Terms(now, self._tokens, WINDOW_S, self._origin)
        proposals: list[Proposal] = []
        for row in self._states.due(due):
            answer = self._decided(row, terms)
            if (job := others_of(answer)) is not None:
                proposals += decide_others(job, self._states.unfinished(job.id), terms)
            if isinstance(answer, Proposal):
                proposals.append(answer)
        return bool(proposals), self._append(proposals)

    def next_claim(self, now: datetime) -> datetime | None:
        """When something is due after ``now``; what waits for a run to end is not known here."""
        turns = [at for at in self._not_before.values() if at > now]
        first = self._index.next_fire(now)
        return min([*turns, *([] if first is None else [first])], default=None)

    def leave(self, now: datetime) -> None:
        """Nobody looks from ``now`` to the next claim: what waits is not attended to meanwhile."""
        self._waiting = {job: at or now for job, at in self._waiting.items()}

    def _lead(self) -> None:
        for partition in range(self._partitions) if not self._tokens else ():
            before = PartitionState(partition_stream(self._namespace, partition), partition)
            election = decide_election(before, INSTANCE, LEASE_S, origin=self._origin)
            decision, after = decide_on_partition(before, [election], LEASE_S)
            assert self._log.append([decision]).verdicts == ["accepted"]
            assert after.token is not None
            self._tokens[partition] = after.token

    def _decided(self, row: DueJob | DueOccurrence, terms: Terms) -> Proposal | Later | None:
        if isinstance(row, DueOccurrence):
            return decide_occurrence(row, terms)
        job = row.job
        already: set[UUID] = set()
        if job.id in self._refused and job.next_fire is not None:
            already = self._index.known([occurrence_id(job.id, job.next_fire)])
        attended = (self._waiting[job.id] or terms.now) if job.id in self._waiting else None
        answer = decide_job(row, terms, Fired(attended, already))
        again = answer.again_at if isinstance(answer, Proposal) else None
        if again is not None or (isinstance(answer, Later) and answer.waits):
            self._waiting[job.id] = None
        else:
            self._waiting.pop(job.id, None)
        if again is None:
            self._not_before.pop(job.id, None)
        else:
            self._not_before[job.id] = again
        return answer

    def _append(self, proposals: Sequence[Proposal]) -> list[ReadyRun]:
        """The runs of the claims that the log accepted."""
        ordered = sorted(proposals, key=lambda proposal: -proposal.priority)
        fences = Fences(INSTANCE, self._tokens)
        verdicts = self._log.append([proposal.decision for proposal in ordered], fences).verdicts
        runs: list[ReadyRun] = []
        for proposal, verdict in zip(ordered, verdicts, strict=True):
            if verdict == "full":
                continue  # it waits in its lane
            if verdict != "accepted":
                self._refused.add(proposal.id)
                continue
            self._refused.discard(proposal.id)
            runs += [
                ready_run(
                    proposal.job,
                    claimed,
                    lost=proposal.lost_before,
                    replayed=proposal.replayed,
                    since=proposal.since,
                )
                for claimed in proposal.claimed
            ]
        return runs
