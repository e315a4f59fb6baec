"""Admission: which of the runs in hand may begin, and what is begun.

    waiting ─(slots)─▶ attempting ─(the log's word)─▶ running ─▶ ended
                            │ refused
                            └─▶ looked up

A run takes its slots first, is attempted in the log next, and runs only when the log has accepted
that. Where handlers are over in a moment, some more are attempted ahead of their slots, so that the
slots are not idle during an append; never more than this worker's pace uses up meanwhile.

Each queue is wanted by itself. Of one that has a limit no more comes into these hands than may
begin soon; and what waits here for a limit of its queue or its handler takes no place from what
could begin at once. Else a flood of slow runs would fill the hands, and the quick ones of another
queue would come in one at a time between them, later and later.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from uuid import UUID

from horolog.application.log import Verdict
from horolog.application.ready import ReadyRun
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.attempting import attempt_of
from horolog.application.worker.counting import Counting
from horolog.application.worker.finishing import Finishing
from horolog.application.worker.group_commit import GroupCommit
from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.held import Held
from horolog.application.worker.pace import Pace
from horolog.application.worker.run import Lifeline, Run
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.slots import Slots

_MAX_AHEAD = 1_000
_PULL_AHEAD_S = 0.15
_ATTEMPT_AHEAD_S = 0.08
"""How far ahead runs are pulled and attempted, in seconds of the present pace: some more than an
append takes on a busy machine. Shorter: the slots are idle meanwhile, and appends are small, each
with its fixed cost. Longer: more is attempted and not begun where a worker is killed."""

_Key = tuple[int, int]
"""The number of an occurrence's id, and the attempt's: Python code hashes UUIDs."""


@dataclass(slots=True)
class Waiting:
    """A run in hand that is not attempted yet."""

    ready: ReadyRun
    handler: AnyHandler
    held: Held


def _key(ready: ReadyRun) -> _Key:
    return (ready.occurrence.int, ready.attempt)


def _nobody() -> None:
    """Nobody pulls yet."""


class Admission:
    """For the event loop's thread, but for ``in_hand`` and ``find``."""

    def __init__(
        self,
        commit: GroupCommit,
        finishing: Finishing,
        counting: Counting,
        slots: Slots,
        *,
        settings: WorkerSettings,
        actor: str,
        monotonic: Callable[[], float],
        refused: Callable[[ReadyRun, Held], None],
    ) -> None:
        self._commit = commit
        commit.appended = self.wake
        self._finishing = finishing
        self._counting = counting
        self._slots = slots
        self._settings = settings
        self._actor = actor
        self._monotonic = monotonic
        self._refused = refused
        self._pace = Pace(monotonic())
        self._paces = {queue: Pace(monotonic()) for queue in settings.queue_limits}
        self._waiting: deque[Waiting] = deque()
        self._waiting_of: Counter[str] = Counter()
        self._blocked = 0
        """How many of those that wait lack a slot that others do not need."""
        self._unwanted: set[str] = set()
        """The queues that were told of late that nothing is wanted of them."""
        self._attempting: dict[_Key, Attempt] = {}
        self._begun: deque[Attempt] = deque()
        self._running: dict[_Key, Attempt] = {}
        self._ahead = 0
        self._serials = count(1)
        self._stopping = False
        self._scheduled = False
        self.has_room = asyncio.Event()
        """Set when more runs are wanted in hand."""
        self.quiet = asyncio.Event()
        """Set, once stopping, when no attempt is in hand any more."""
        self.wants_more: Callable[[], None] = _nobody
        """Called when something is wanted again of a queue of which nothing was."""

    def connect(self, start: Callable[[Attempt], None], lifeline: Lifeline) -> None:
        """What runs the handlers, and what their runs reach; both need this in turn."""
        self._start = start
        self._lifeline = lifeline

    # Taking in.

    def room(self) -> int:
        """How many more runs are wanted in hand now, of all queues together."""
        if self._stopping or not self._may_begin():
            return 0
        return self._in_all() - (len(self._waiting) - self._blocked)

    def room_for(self, queue: str) -> int:
        """How many more runs of the queue are wanted in hand now."""
        room = min(self.room(), self._most_of(queue) - self._waiting_of[queue])
        if room <= 0:
            self._unwanted.add(queue)
        return room

    def is_limited(self, queue: str) -> bool:
        """Whether the queue has a limit of its own here, so that it shares with no other."""
        return queue in self._paces

    def _in_all(self) -> int:
        return self._slots.free + self._at_pace(_PULL_AHEAD_S)

    def _most_of(self, queue: str) -> int:
        """How many runs of the queue may wait here."""
        left, pace = self._slots.left(queue), self._paces.get(queue)
        if left is None or pace is None:
            return self._in_all()
        return min(self._in_all(), left + self._ahead_of(pace, _PULL_AHEAD_S))

    def add(self, ready: ReadyRun, handler: AnyHandler, held: Held) -> None:
        """Takes a run in hand; ``wake`` or ``admit`` follows."""
        self._waiting.append(Waiting(ready, handler, held))
        self._waiting_of[ready.queue] += 1

    def wake(self) -> None:
        """Admits what waits, once for all that happens in this round of the loop."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.admit)

    def admit(self) -> None:
        """Attempts what has its slots; tells who pulls if there is room for more."""
        self._scheduled = False
        if self._stopping:
            return
        blocked: list[Waiting] = []
        may_be_ahead = self._at_pace(_ATTEMPT_AHEAD_S)
        while self._waiting and self._may_begin():
            has_free = self._slots.free > 0
            if not has_free and self._ahead >= may_be_ahead:
                break
            waiting = self._waiting.popleft()
            self._no_longer_waits(waiting)
            if self._is_in_hand(waiting):
                # A second copy of what is in hand already: the first one's outcome is enough.
                self._counting.add("redeliveries")
                waiting.held.settle()
            elif has_free and self._slots.take(waiting.handler, waiting.ready.queue):
                self._attempt(waiting, has_slots=True)
            elif self._ahead < may_be_ahead and self._slots.are_plain(
                waiting.handler, waiting.ready.queue
            ):
                self._ahead += 1
                self._attempt(waiting, has_slots=False)
            else:
                blocked.append(waiting)
                self._waiting_of[waiting.ready.queue] += 1
        self._waiting.extendleft(reversed(blocked))
        self._blocked = len(blocked)
        self._say_what_is_wanted()

    def _no_longer_waits(self, waiting: Waiting) -> None:
        queue = waiting.ready.queue
        self._waiting_of[queue] -= 1
        if self._waiting_of[queue] <= 0:
            del self._waiting_of[queue]

    def _say_what_is_wanted(self) -> None:
        if self.room() <= 0:
            return
        self.has_room.set()
        if self._unwanted:
            asked, self._unwanted = self._unwanted, set()
            if any(self.room_for(queue) > 0 for queue in sorted(asked)):
                self.wants_more()

    def give_back_blocked(self) -> None:
        """Gives back what waits for its queue's or handler's own slots and fills these hands: other
        runs of its queue could begin here, or these elsewhere."""
        if not self._blocked or not self._may_begin() or self._slots.free <= 0:
            return
        before = self._monotonic() - self._settings.give_back_delay_s
        waiting = Counter(id(entry.held) for entry in self._waiting)
        full = {q for q, count in self._waiting_of.items() if count >= self._most_of(q)}
        given: set[int] = set()
        for entry in self._waiting:
            held = entry.held
            whole = waiting[id(held)] == held.open and entry.ready.queue in full
            if whole and id(held) not in given and held.held_since <= before:
                given.add(id(held))
                held.give_back(self._settings.give_back_delay_s)
        if given:
            gone = [entry for entry in self._waiting if id(entry.held) in given]
            self._waiting = deque(entry for entry in self._waiting if id(entry.held) not in given)
            for entry in gone:
                self._no_longer_waits(entry)
            self._blocked = max(0, self._blocked - len(gone))
            self._say_what_is_wanted()

    def _may_begin(self) -> bool:
        return self._commit.available and self._commit.waiting < self._settings.uncommitted_runs

    def _at_pace(self, seconds: float) -> int:
        return self._ahead_of(self._pace, seconds)

    def _ahead_of(self, pace: Pace, seconds: float) -> int:
        return min(_MAX_AHEAD, int(pace.per_second(self._monotonic()) * seconds))

    def _is_in_hand(self, waiting: Waiting) -> bool:
        key = _key(waiting.ready)
        return key in self._attempting or key in self._running

    # Attempting and running.

    def _attempt(self, waiting: Waiting, *, has_slots: bool) -> None:
        ready = waiting.ready
        serial = next(self._serials)
        decision, state = attempt_of(ready, self._actor, self._settings.lease_s, serial)
        run = Run(ready, self._lifeline)
        attempt = Attempt(ready, waiting.handler, waiting.held, state, run)
        attempt.has_slots = has_slots
        self._attempting[_key(ready)] = attempt
        self._commit.submit(decision, partial(self._attempted, attempt))

    def _attempted(self, attempt: Attempt, verdict: Verdict) -> None:
        """What the log says to an attempt."""
        key = _key(attempt.ready)
        del self._attempting[key]
        if verdict != "accepted":
            self._release(attempt)
            self._refused(attempt.ready, attempt.held)
            self._after_one()
            return
        attempt.trusted_until = self._commit.sent_at + self._settings.trusted_s
        self._running[key] = attempt  # from here on the heartbeats have it
        if self._stopping:
            self._return(attempt)
        elif attempt.has_slots or self._take_slots(attempt):
            self._start(attempt)
        else:
            self._begun.append(attempt)

    def ended(self, attempt: Attempt) -> None:
        """A handler has ended: its slots are free."""
        self._running.pop(_key(attempt.ready), None)
        self._release(attempt)
        now = self._monotonic()
        self._pace.note(1, now)
        if (pace := self._paces.get(attempt.ready.queue)) is not None:
            pace.note(1, now)
        while self._begun and self._take_slots(self._begun[0]):
            self._start(self._begun.popleft())
        self._after_one()

    def _take_slots(self, attempt: Attempt) -> bool:
        if not self._slots.take(attempt.handler, attempt.ready.queue):
            return False
        attempt.has_slots = True
        self._ahead -= 1
        return True

    def _release(self, attempt: Attempt) -> None:
        if attempt.has_slots:
            self._slots.release(attempt.handler, attempt.ready.queue)
        else:
            self._ahead -= 1

    def _after_one(self) -> None:
        if not self._stopping:
            self.wake()
        elif not self._running and not self._attempting:
            self.quiet.set()

    # For the heartbeats, from any thread.

    def in_hand(self) -> Iterable[Attempt]:
        """The attempts whose leases are ours to keep."""
        while True:
            try:
                return list(self._running.values())
            except RuntimeError:  # it grew while it was copied
                continue

    def find(self, occurrence: UUID, attempt: int) -> Attempt | None:
        return self._running.get((occurrence.int, attempt))

    # Stopping.

    def stop(self) -> int:
        """Begins nothing more and gives back what has not begun; how many runs go on."""
        self._stopping = True
        for waiting in self._waiting:
            waiting.held.give_back(0.0)
        self._waiting.clear()
        self._waiting_of.clear()
        self._blocked = 0
        for attempt in self._begun:
            self._return(attempt)
        self._begun.clear()
        if not self._running and not self._attempting:
            self.quiet.set()
        return len(self._running)

    def _return(self, attempt: Attempt) -> None:
        """Gives back in the log what was attempted and has not begun."""
        self._running.pop(_key(attempt.ready), None)
        attempt.started_at = self._monotonic()
        self._finishing.snoozed(attempt, 0.0, reason="the worker stops")
        self._release(attempt)
        self._after_one()
