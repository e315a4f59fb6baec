"""Claimed runs on their way to the ready queue: bounded, in order, grouped into messages.

A run that waits alone travels alone, so that workers share the work finely. In a flood several of
one queue share a message, until all of the flood is on its way. A message that was not confirmed
keeps its runs and its id: it is given out again as it was, so that a repetition is recognised as
one.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from uuid import UUID

from horolog.application.ready import MAX_MESSAGE_BYTES, MAX_RUNS, ClaimsEncoder
from horolog.application.scanner.progress import Batch, Progress
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.tracing import RunTraces
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState


@dataclass(slots=True)
class Pending:
    """A claimed run that is not known to be in the queue. ``copy`` counts earlier messages of the
    same claim that the queue no longer held."""

    occurrence: UUID
    attempt: int
    queue: str
    data: bytes
    batch: Batch | None
    copy: int = 0
    claimed_in: str | None = None

    @property
    def message_id(self) -> str:
        identity = f"{self.occurrence}:{self.attempt}"
        return f"{identity}~{self.copy}" if self.copy else identity


@dataclass(slots=True)
class Message:
    """What is published at once: the runs of one queue. ``retry`` varies the id, where the queue
    took it for a duplicate of something that it does not hold. ``traceparent`` is the span that
    publishes it."""

    queue: str
    base_id: str
    runs: list[Pending] = field(default_factory=list[Pending])
    retry: int = 0
    traceparent: str | None = None

    @property
    def message_id(self) -> str:
        return f"{self.base_id}~r{self.retry}" if self.retry else self.base_id

    @property
    def data(self) -> bytes:
        """As :func:`horolog.application.ready.encode` would give it."""
        return b'{"format":1,"runs":[%b]}' % b",".join(run.data for run in self.runs)


class Outbox:
    """Bounded by count and by size; who adds more than there was room for is let through once."""

    def __init__(
        self, settings: ScannerSettings, progress: Progress, traces: RunTraces | None = None
    ) -> None:
        self._traces = traces or RunTraces()
        self._settings = settings
        self._progress = progress
        self._encoder = ClaimsEncoder()
        self._waiting: dict[str, deque[Pending]] = {}
        self._again: deque[Message] = deque()
        self._flooded: set[str] = set()
        self._attempts: dict[UUID, int] = {}
        self._of_queue: Counter[str] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._attempts)

    def __contains__(self, run: tuple[UUID, int]) -> bool:
        return self._attempts.get(run[0]) == run[1]

    @property
    def room(self) -> int:
        """How many more runs may be claimed."""
        if self._bytes >= self._settings.max_unpublished_bytes:
            return 0
        return max(0, self._settings.max_unpublished - len(self._attempts))

    def add(
        self,
        job: JobState,
        claimed: OccurrenceState,
        *,
        batch: Batch | None,
        lost: bool = False,
        replayed: bool = False,
        since: datetime | None = None,
        copy: int = 0,
    ) -> None:
        """A claim that the log accepted."""
        trace = self._traces.take(claimed.id)
        data = self._encoder.encode(
            job, claimed, lost=lost, replayed=replayed, since=since, trace=trace
        )
        claimed_in = None if trace is None else trace.claimed_in
        queue = job.definition.queue
        pending = Pending(claimed.id, claimed.attempt, queue, data, batch, copy, claimed_in)
        self._waiting.setdefault(pending.queue, deque()).append(pending)
        self._attempts[pending.occurrence] = pending.attempt
        self._of_queue[pending.queue] += 1
        self._bytes += len(data)

    def unpublished(self, queue: str) -> int:
        """How many runs of a queue are on their way."""
        return self._of_queue[queue]

    def take(self, limit: int) -> list[Message]:
        """The next messages, at most ``limit``: unconfirmed ones first, then of all queues in
        turn. The caller confirms each of them or puts it back."""
        taken: list[Message] = []
        while self._again and len(taken) < limit:
            taken.append(self._again.popleft())
        while self._waiting and len(taken) < limit:
            for queue in list(self._waiting):
                if len(taken) == limit:
                    break
                taken.append(self._next_message(queue))
        return taken

    def put_back(self, messages: list[Message]) -> None:
        """Unconfirmed messages, in the order in which they were taken."""
        self._again.extendleft(reversed(messages))

    def confirm(self, message: Message) -> None:
        """The queue holds the message."""
        for run in message.runs:
            self._done(run)

    def abandon(self, message: Message) -> None:
        """The queue will never take the message: its runs wait for their claim windows to end."""
        self.confirm(message)

    def _done(self, run: Pending) -> None:
        if self._attempts.get(run.occurrence) == run.attempt:
            del self._attempts[run.occurrence]
        self._of_queue[run.queue] -= 1
        self._bytes -= len(run.data)
        if run.batch is not None:
            self._progress.confirm(run.batch)

    def _next_message(self, queue: str) -> Message:
        waiting = self._waiting[queue]
        if len(waiting) > self._settings.flood_runs:
            self._flooded.add(queue)
        most = MAX_RUNS if queue in self._flooded else 1
        runs = [waiting.popleft()]
        size = len(runs[0].data)
        while waiting and len(runs) < most:
            size += len(waiting[0].data) + 1
            if size > MAX_MESSAGE_BYTES:
                break
            runs.append(waiting.popleft())
        if waiting:
            # To the end of the turn: the next message is another queue's.
            self._waiting[queue] = self._waiting.pop(queue)
        else:
            del self._waiting[queue]
            self._flooded.discard(queue)
        return Message(queue, _identity(runs), runs)


def _identity(runs: list[Pending]) -> str:
    """The run's own id; for many, the first one's and a hash of all."""
    first = runs[0].message_id
    if len(runs) == 1:
        return first
    everything = "\n".join(run.message_id for run in runs)
    return f"{first}+{blake2b(everything.encode(), digest_size=8).hexdigest()}"
