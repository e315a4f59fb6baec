"""Taking: pulls from the ready queue what this worker has room for, and reads it.

A message is a hint from outside. One that cannot be read is thrown away and counted; of one that
no scanner has signed, the names of its claims are believed and the rest is read from the log. A run
that nobody here can do is left to a worker that can, and in the end becomes a dead letter.
"""

import logging
from collections.abc import Callable, Mapping
from math import ceil

from horolog.application.decision import decide_on_occurrence
from horolog.application.log import Verdict
from horolog.application.ready import ReadyRun, decode, is_signed
from horolog.application.worker.admission import Admission
from horolog.application.worker.counting import Counting
from horolog.application.worker.group_commit import GroupCommit
from horolog.application.worker.handlers import AnyHandler
from horolog.application.worker.held import NEVER, Held, HeldMessages, PullsReady, ReadyMessage
from horolog.application.worker.settings import WorkerSettings
from horolog.domain.occurrence_events import DeadLettered
from horolog.domain.sealed import is_sealed

log = logging.getLogger("horolog.worker")

_MAX_PULL = 256


class Taking:
    """From the queue into this worker's hands."""

    def __init__(
        self,
        ready: PullsReady,
        admission: Admission,
        held: HeldMessages,
        commit: GroupCommit,
        counting: Counting,
        *,
        handlers: Mapping[str, AnyHandler],
        settings: WorkerSettings,
        actor: str,
        monotonic: Callable[[], float],
        refused: Callable[[ReadyRun, Held], None],
        opens_sealed: bool,
        key: bytes | None = None,
        doubted: Callable[[list[ReadyRun], Held], None] | None = None,
    ) -> None:
        """``doubted`` looks up what no scanner has signed with the ``key``, and answers with
        :meth:`take`; without a key everything is believed."""
        self._key = key
        self._doubted = doubted
        self._ready = ready
        self._opens_sealed = opens_sealed
        self._named_sealed = False
        self._admission = admission
        self._held = held
        self._commit = commit
        self._counting = counting
        self._handlers = handlers
        self._settings = settings
        self._actor = actor
        self._monotonic = monotonic
        self._refused = refused
        admission.wants_more = ready.wants_more
        self._runs_per_message: dict[str, float] = {}
        """By the queues that were asked about: one in a flood sends many in a message, and another
        that one at a time is not to be asked for fewer because of it."""
        self._named_unknown: set[str] = set()

    async def run(self) -> None:
        """Pulls whenever there is room, until cancelled."""
        admission = self._admission
        while True:
            room = admission.room()
            if room <= 0:
                admission.has_room.clear()
                await admission.has_room.wait()
                continue
            messages = await self._ready.pull(min(_MAX_PULL, room), self._wanted)
            for message in messages:
                self._take(message)
            admission.admit()

    def _wanted(self, queue: str) -> int:
        """How many messages of a queue are wanted: queues without a limit share what there is."""
        size = self._runs_per_message.setdefault(queue, 1.0)
        room = self._admission.room_for(queue)
        if room <= 0:
            return 0
        shared = 1 if self._admission.is_limited(queue) else len(self._runs_per_message)
        return min(_MAX_PULL, ceil(room / shared / size))

    def _note_size(self, queue: str, runs: int) -> None:
        """Quick to believe in many runs a message, slow to forget it: never too much."""
        size = self._runs_per_message.get(queue)
        if size is not None:
            self._runs_per_message[queue] = max(1.0, runs, size * 0.95)

    def _take(self, message: ReadyMessage) -> None:
        """Takes a message in hand."""
        try:
            runs = decode(message.data)
        except ValueError as error:
            self._throw_away(message, str(error))
            return
        if not runs:
            self._throw_away(message, "it holds no run")
            return
        self._note_size(runs[0].queue, len(runs))
        held = self._held.hold(message, len(runs), self._monotonic())
        if self._key is None or self._doubted is None or is_signed(message.data, self._key):
            for ready in runs:
                self.take(ready, held)
        else:
            self._counting.add("unsigned_messages")
            self._doubted(runs, held)

    def take(self, ready: ReadyRun, held: Held) -> None:
        """Takes in hand a run whose message says what the log says."""
        handler = self._handlers.get(ready.name)
        if handler is None:
            self._no_handler(ready, held)
        elif is_sealed(ready.payload) and not self._opens_sealed:
            self._no_master_key(held)
        else:
            self._admission.add(ready, handler, held)

    def _throw_away(self, message: ReadyMessage, why: str) -> None:
        self._counting.add("strange_messages")
        log.warning("a message in the ready queue was thrown away: %s", why)
        message.tell(NEVER)

    def _no_master_key(self, held: Held) -> None:
        """A run whose payload cannot be read here: left to a worker that has the key, and kept."""
        self._counting.add("sealed_without_key")
        if not self._named_sealed:
            self._named_sealed = True
            log.error(
                "this worker has no master key (HOROLOG_MASTER_KEY, HOROLOG_MASTER_KEY_FILE):"
                " runs of jobs with a subject are left to others"
            )
        held.leave(self._settings.unknown_handler_delay_s)

    def _no_handler(self, ready: ReadyRun, held: Held) -> None:
        """A run that nobody here can do: another worker's, and in the end a dead letter."""
        left_s = self._settings.unknown_handler_wait_s - held.message.age_s
        self._counting.add("unknown_handlers")
        if ready.name not in self._named_unknown:
            self._named_unknown.add(ready.name)
            log.warning("this worker has no handler %r; its runs are left to others", ready.name)
        if left_s > 0:
            held.leave(min(left_s, self._settings.unknown_handler_delay_s))
            return
        event = DeadLettered(
            cause="unknown_handler",
            owner=ready.owner,
            error=f"no worker had a handler {ready.name!r} within"
            f" {self._settings.unknown_handler_wait_s:g} s",
            actor=self._actor,
        )
        decision, _ = decide_on_occurrence(ready.claimed(), [event], name=ready.name)

        def settled(verdict: Verdict) -> None:
            if verdict == "accepted":
                held.settle()
            else:
                self._refused(ready, held)

        self._commit.submit(decision, settled)
