"""Claiming: what is due becomes a fenced decision in the log, in bounded batches.

One batch is one read of the rows as they are, one decision for each when it is due, and one append
for all partitions together with their fencing tokens. The wheel only said when to look: what is
claimed is decided from the row, and the log accepts it only while the row is still the same. A
conflict means that somebody else changed the row: it is read again a moment later. A stale fence
means that a newer leader was elected: the partition is given up. What finds a lane full waits there
until the lane is served.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences
from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.clock import Clock, DatabaseTime, microseconds
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
from horolog.application.scanner.headroom import Headroom
from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.progress import Progress
from horolog.application.scanner.reading import Reading, ReadsRows
from horolog.application.scanner.reading_ahead import ReadingAhead
from horolog.application.scanner.serving import Serving
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory
from horolog.application.scanner.wheel import Entry
from horolog.application.states import DueJob, DueOccurrence
from horolog.domain.errors import HorologError, OutOfRange
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.origin import Origin

log = logging.getLogger("horolog.scanner")

CONFLICT_PAUSE_US = 100_000
"""How soon a row is read again after the log refused a decision on it."""

FIRST_BATCH = 250
"""The most entries in a batch while the ready queues hold less than that."""

MOST_WAITING = 100_000
"""Jobs whose fire time waits for an earlier run, of which is remembered when they were seen."""


UNDECIDABLE = (HorologError, ValueError, OverflowError, AssertionError)
"""What a decision raises on a row that no release has written."""

MOST_OTHERS = 100
"""Runs of one job that are cancelled at once in favour of the next one."""


class ReadsDueRows(ReadsRows, Protocol):
    """Errors: ``StoreUnavailable``."""

    async def known(self, ids: Sequence[UUID]) -> set[UUID]:
        """Those of the occurrences that have events in the log."""
        ...

    async def unfinished(self, job_id: UUID, limit: int) -> list[OccurrenceState]:
        """The job's unfinished occurrences, the first ones in the order of ids."""
        ...


class Appends(Protocol):
    async def append(self, decisions: list[Decision], fences: Fences | None = None) -> Appended:
        """As :class:`horolog.application.log.AppendsToLog`, without blocking the loop."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """How many entries were drawn, and in how many seconds something is due; ``None``: nothing is
    known to be, or nothing can be claimed for now."""

    drawn: int = 0
    wait_s: float | None = None


class Claiming:
    """Claims what the agenda holds due; one :meth:`step` is one batch."""

    def __init__(
        self,
        territory: Territory,
        agenda: Agenda,
        outbox: Outbox,
        progress: Progress,
        serving: Serving,
        headroom: Headroom,
        *,
        rows: ReadsDueRows,
        reading: Reading,
        appends: Appends,
        clock: Clock,
        time: DatabaseTime,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._agenda = agenda
        self._outbox = outbox
        self._progress = progress
        self._serving = serving
        self._headroom = headroom
        self._rows = rows
        self._reading = reading
        self._appends = appends
        self._clock = clock
        self._time = time
        self._ahead = ReadingAhead(clock, time)
        self._settings = settings
        self._signals = signals
        self._origin = Origin(actor=f"scanner {territory.instance}")
        self._seen_waiting: dict[UUID, tuple[datetime, int]] = {}
        self._refused: dict[UUID, int] = {}
        self._drawn = 0
        self.lateness_s = 0.0
        """How late the latest entry of the last batch was."""

    async def step(self, *, least: int = 1) -> Turn:
        """Claims one batch, if at least so much is due and there is room for it in the outbox.

        Several may run at once: while one batch is in the log, the next is read and decided.
        """
        tokens = self._territory.trusted(self._clock.monotonic())
        if not tokens or not self._time.known:
            return Turn()
        # No more at once than workers have left to do meanwhile: when a flood begins they are not
        # kept waiting for a whole batch of it.
        most = max(FIRST_BATCH, self._headroom.outstanding)
        limit = min(self._settings.claim_batch, most, self._outbox.room - self._drawn)
        if limit <= 0:
            self._signals.emit("held_back")
            return Turn()
        now_us = self._time.now_us()
        soon_us = now_us + self._ahead.lead_us
        self._agenda.release(soon_us)
        if least > 1 and self._agenda.ready < least:
            return Turn()
        entries = self._agenda.draw(soon_us, limit, tokens)
        if entries:
            earliest_us = min(entry.due_us for entry in entries)
            self.lateness_s = max(0, now_us - earliest_us) / 1e6
            await self.claim(entries, tokens)
        due = self._agenda.next_due(tokens)
        soon_us = self._time.now_us() + self._ahead.lead_us
        wait_s = None if due is None else max(0.0, (due - soon_us) / 1e6)
        return Turn(len(entries), wait_s)

    async def claim(self, entries: list[Entry], tokens: dict[int, int]) -> None:
        """One batch that was drawn; where the store is away it stays due."""
        done = False
        self._drawn += len(entries)
        queues = Counter(entry.queue for entry in entries if entry.queue)
        self._headroom.reserve(queues)
        try:
            began = self._clock.monotonic()
            rows = await self._reading.due([entry.id for entry in entries])
            self._ahead.took(self._clock.monotonic() - began)
            await self._ahead.until(max(entry.due_us for entry in entries))
            unknown = {entry.id for entry in entries if not entry.queue}
            await self._decide(self._with_room(rows, unknown), tokens)
            done = True
        finally:
            self._drawn -= len(entries)
            self._headroom.settle(queues)
            self._serving.settle(entries)
            self._agenda.settle(entries)
            if not done:
                for entry in entries:
                    self._agenda.add(entry)

    def _with_room(
        self, rows: list[DueJob | DueOccurrence], unknown: set[UUID]
    ) -> list[DueJob | DueOccurrence]:
        """The rows without those whose queue turned out to hold enough: they take their turn."""
        if not unknown:
            return rows
        kept: list[DueJob | DueOccurrence] = []
        rooms: dict[str, int] = {}
        for row in rows:
            identity = id_of(row)
            queue = row.job.definition.queue
            if identity in unknown:
                rooms[queue] = rooms.get(queue, self._headroom.room(queue)) - 1
                if rooms[queue] < 0:
                    self._agenda.add(entry_of(row.job, identity, microseconds(row.due_at)))
                    continue
            kept.append(row)
        return kept

    async def append(self, proposals: list[Proposal], tokens: dict[int, int]) -> None:
        """Appends decisions under their fences, and does what follows from each verdict."""
        if not proposals:
            return
        proposals.sort(key=lambda proposal: -proposal.priority)
        led = {proposal.partition for proposal in proposals}
        fences = self._territory.fences({p: tokens[p] for p in led if p in tokens})
        decisions = [proposal.decision for proposal in proposals]
        try:
            answer = await self._appends.append(decisions, fences)
        except OutOfRange:
            await self._append_apart(proposals, tokens)
            return
        self._signals.emit("appended")
        stale: set[int] = set()
        accepted: list[Proposal] = []
        for proposal, verdict in zip(proposals, answer.verdicts, strict=True):
            if verdict == "accepted":
                accepted.append(proposal)
            elif verdict == "stale":
                stale.add(proposal.partition)
                self._signals.emit("stale")
            elif verdict == "full":
                self._serving.refused(proposal)
            else:
                self._conflict(proposal)
        for partition in stale:
            if self._territory.lose(partition):
                self._signals.emit("deposed")
        self._accept(accepted, answer.position)

    async def _append_apart(self, proposals: list[Proposal], tokens: dict[int, int]) -> None:
        """What the log cannot keep whole, in halves: until the one that it cannot keep is alone."""
        if len(proposals) == 1:
            self._reading.set_aside(proposals[0].id)
            return
        middle = len(proposals) // 2
        await self.append(proposals[:middle], tokens)
        await self.append(proposals[middle:], tokens)

    async def _decide(self, rows: list[DueJob | DueOccurrence], tokens: dict[int, int]) -> None:
        now = self._time.now()
        terms = Terms(now, tokens, self._settings.claim_window_s, self._origin)
        already = await self._already_claimed(rows)
        proposals: list[Proposal] = []
        for row in rows:
            try:
                answer = self._answer(row, terms, already)
            except UNDECIDABLE:
                self._reading.set_aside(id_of(row))
                continue
            if (job := others_of(answer)) is not None:
                others = await self._rows.unfinished(job.id, MOST_OTHERS)
                proposals += decide_others(job, others, terms)
            if isinstance(answer, Proposal):
                proposals.append(answer)
            elif isinstance(answer, Later):
                self._agenda.wheel.add(entry_of(row.job, answer.id, microseconds(answer.at)))
        self._serving.queue_up(proposals)
        await self.append(proposals, tokens)

    def _answer(
        self, row: DueJob | DueOccurrence, terms: Terms, already: Collection[UUID]
    ) -> Proposal | Later | None:
        if isinstance(row, DueOccurrence):
            return None if row.occurrence.state == "claimed" else decide_occurrence(row, terms)
        attended, not_before = self._seen_waiting.get(row.job.id, (None, 0))
        now_us = microseconds(terms.now)
        if not_before > now_us and row.due_at <= terms.now:
            # The sweep brought it before its turn: a backlog is claimed at the rate it asks for.
            turn = terms.now + timedelta(microseconds=not_before - now_us)
            return Later(row.job.id, row.job.partition, turn)
        answer = decide_job(row, terms, Fired(attended, already))
        again = None
        if isinstance(answer, Later) and answer.waits:
            again = answer.at
        elif isinstance(answer, Proposal):
            again = answer.again_at
        if again is None:
            self._seen_waiting.pop(row.job.id, None)
        elif len(self._seen_waiting) < MOST_WAITING or row.job.id in self._seen_waiting:
            self._seen_waiting[row.job.id] = (terms.now, microseconds(again))
        return answer

    async def _already_claimed(self, rows: list[DueJob | DueOccurrence]) -> set[UUID]:
        """For jobs that the log refused to claim twice in a row: which occurrences it holds. (A
        clock or a schedule was set back over a fire time that has run.)"""
        if not self._refused:
            return set()
        jobs = [row.job for row in rows if isinstance(row, DueJob)]
        candidates = [
            occurrence_id(job.id, job.next_fire)
            for job in jobs
            if job.next_fire is not None and self._refused.get(job.id, 0) > 1
        ]
        return await self._rows.known(candidates) if candidates else set()

    def _accept(self, accepted: list[Proposal], position: int) -> None:
        """Hands claims to the outbox, and notes what the decisions made due."""
        counts: dict[int, int] = {}
        for proposal in accepted:
            if proposal.claimed:
                number = counts.get(proposal.partition, 0)
                counts[proposal.partition] = number + len(proposal.claimed)
        batches = {p: self._progress.begin(p, position, count) for p, count in counts.items()}
        for proposal in accepted:
            for claimed in proposal.claimed:
                self._outbox.add(
                    proposal.job,
                    claimed,
                    batch=batches[proposal.partition],
                    lost=proposal.lost_before,
                    replayed=proposal.replayed,
                    since=proposal.since,
                )
            if proposal.claimed:
                self._headroom.given(proposal.queue, len(proposal.claimed))
            self._note_due(proposal)
            if self._refused:
                self._refused.pop(proposal.id, None)
            self._signals.emit(proposal.what, len(proposal.claimed) or 1)

    def _note_due(self, proposal: Proposal) -> None:
        """The rows that the decision wrote, in the wheel at once: nobody tells us of them."""
        if proposal.again_at is not None:
            due_us = microseconds(proposal.again_at)
            self._agenda.wheel.add(entry_of(proposal.job, proposal.id, due_us))
            return
        horizon = self._time.now_us() + int(self._settings.horizon_s * 1e6)
        for row in proposal.decision.next_runs:
            if row.look or row.due_at is None:
                continue
            due_us = microseconds(row.due_at)
            if due_us <= horizon:
                self._agenda.add(entry_of(proposal.job, row.id, due_us))

    def _conflict(self, proposal: Proposal) -> None:
        self._signals.emit("conflict")
        if len(self._refused) > MOST_WAITING:
            self._refused.clear()
        self._refused[proposal.id] = self._refused.get(proposal.id, 0) + 1
        due_us = self._time.now_us() + CONFLICT_PAUSE_US
        self._agenda.wheel.add(entry_of(proposal.job, proposal.id, due_us))


def id_of(row: DueJob | DueOccurrence) -> UUID:
    """The id of the row itself: an occurrence that cannot be decided on must not stop its job."""
    return row.job.id if isinstance(row, DueJob) else row.occurrence.id


def entry_of(job: JobState, identity: UUID, due_us: int) -> Entry:
    """A row of the index as the agenda takes it in, with the job at hand."""
    definition = job.definition
    key = definition.concurrency_key
    tenant = f"n{definition.name}" if key is None else f"k{key}"
    return Entry(due_us, identity, job.partition, definition.queue, tenant, definition.priority)
