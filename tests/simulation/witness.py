"""What really happened, seen from outside: which handler ran, what was published, what was said.

The log is what the system says of itself. This is what an observer at its edges saw, who compares
the two at once where that can be done: nothing may run that the log does not call attempted, and
nothing may be published that it does not call claimed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_core import from_json

from horolog.application.scanner.outbox import Message
from horolog.application.worker.held import Word
from horolog.infrastructure.simulated.ready_stream import Delivery

if TYPE_CHECKING:
    from tests.simulation.virtual_time import Process
    from tests.simulation.world import World


@dataclass(slots=True)
class Execution:
    """One run of a handler's code; times are the world's seconds. ``outcome``: how it left the
    handler, "" while it has not."""

    occurrence: UUID
    job: UUID
    name: str
    attempt: int
    process: "Process"
    began: float
    payload: dict[str, Any]
    ended: float | None = None
    outcome: str = ""
    result: Any = None


class Witness:
    """Keeps the account; ``world.problem`` hears of what must not be."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.executions: list[Execution] = []
        self.effects: Counter[UUID] = Counter()
        """What transactional handlers have committed."""
        self.reconciled: set[UUID] = set()
        self.copies: Counter[tuple[UUID, int]] = Counter()
        self.arrived: dict[tuple[UUID, int], float] = {}
        """When the first message of a claim reached the stream."""
        self._of: dict[UUID, list[Execution]] = {}
        self._confirmed: dict[tuple[UUID, int], dict[str, int]] = {}
        self._told: set[tuple[int, UUID, int]] = set()
        """Of which attempts a process's heartbeat has heard that they are not its own any more."""

    # Handlers.

    def begin(self, process: "Process", run: Any, payload: dict[str, Any]) -> Execution:
        seen = Execution(
            run.occurrence_id,
            run.job_id,
            run.name,
            run.attempt,
            process,
            self._world.loop.now,
            payload,
        )
        before = self._of.setdefault(seen.occurrence, [])
        history = self._history(seen.occurrence)
        begun = [
            state
            for topic, state in history
            if topic == "occurrence.attempted.1" and state["attempt"] == seen.attempt
        ]
        actor = f"worker/{process.name}"
        if not begun:
            self._problem("a handler ran that the log does not call attempted", seen)
        elif begun[0]["actor"] != actor:
            self._problem(f"a handler ran here of which the log says {begun[0]['actor']}", seen)
        for other in before:
            if other.attempt == seen.attempt:
                self._problem("one attempt ran twice", seen)
        self._check_begins(process, seen, history)
        before.append(seen)
        self.executions.append(seen)
        return seen

    def _check_begins(
        self, process: "Process", seen: Execution, history: Sequence[tuple[str, dict[str, Any]]]
    ) -> None:
        """What begins is not given up already; unless its worker cannot know: its clock stood, or
        the log's went ahead."""
        ended = any(
            topic in _ENDS and state.get("attempt") == seen.attempt for topic, state in history
        )
        if (id(process), seen.occurrence, seen.attempt) in self._told:
            self._problem("an attempt began of which its worker was told that it is gone", seen)
            return
        cannot_know = getattr(process, "stood_s", 0.0) or self._ended_by_a_step(seen)
        if ended and not cannot_know:
            self._problem("an attempt began after the log had given it up", seen)
        for other in self._of[seen.occurrence]:
            if (
                other.attempt < seen.attempt
                and other.ended is None
                and not any(
                    topic in _ENDS and state.get("attempt") == other.attempt
                    for topic, state in history
                )
            ):
                self._problem(f"attempt {other.attempt} still ran, and was not given up", seen)

    def _ended_by_a_step(self, seen: Execution) -> bool:
        """Whether its lease was over by the log's clock alone, which was set forward meanwhile.

        Leases end by that clock. A worker measures how long it has had one by its own, and hears of
        the step with its next heartbeat; it may begin until then, as if it had begun just before
        the step, and its outcome is refused; whoever was told may not. By the time that has really
        passed the lease must run.
        """
        of_it = {
            topic: (at, state)
            for topic, state, at in self._recorded(seen.occurrence)
            if state.get("attempt") == seen.attempt
        }
        lost, attempted = of_it.get("occurrence.lost.1"), of_it.get("occurrence.attempted.1")
        if lost is None or attempted is None:
            return False
        lease_s = attempted[1]["lease"]
        passed_s = self._world.loop.now - self._world.seconds_at(attempted[0])
        return passed_s < lease_s <= (lost[0] - attempted[0]).total_seconds()

    def told(
        self, process: "Process", asked: Sequence[tuple[UUID, int]], held: frozenset[UUID]
    ) -> None:
        """The answer to a heartbeat, which the process has."""
        self._told.update((id(process), *one) for one in asked if one[0] not in held)

    def end(self, seen: Execution, outcome: str, result: Any = None) -> None:
        seen.ended, seen.outcome, seen.result = self._world.loop.now, outcome, result

    def commit(self, effects: Sequence[UUID]) -> None:
        """Effects became true together with the log's success."""
        for occurrence in effects:
            self.effects[occurrence] += 1
            if self.effects[occurrence] > 1:
                self._world.problem(f"the effect of {occurrence} was committed twice")

    def did(self, occurrence: UUID) -> bool:
        """Whether an attempt of it came to its end: what a downstream would answer."""
        return any(e.outcome == "returned" for e in self._of.get(occurrence, ()))

    def of(self, occurrence: UUID) -> Sequence[Execution]:
        return self._of.get(occurrence, ())

    # The ready queue.

    def publishing(self, process: "Process", messages: Sequence[Message]) -> None:
        """A scanner sends messages: never one whose place in the stream it has been told of."""
        held = {m.message_id for m in self._world.stream.held()}
        for message in messages:
            for run in message.runs:
                places = self._confirmed.get((run.occurrence, run.attempt), {})
                mine = [m for m, p in places.items() if p == id(process) and m in held]
                if mine and message.message_id not in mine:
                    self._world.problem(
                        f"{process.name} publishes {message.message_id}, where the stream holds"
                        f" {mine[0]} of the same claim, as it was told"
                    )

    def published(
        self, process: "Process", messages: Sequence[Message], receipts: Sequence[Any]
    ) -> None:
        for message, receipt in zip(messages, receipts, strict=True):
            if receipt.answer == "stored":
                for run in message.runs:
                    places = self._confirmed.setdefault((run.occurrence, run.attempt), {})
                    places[message.message_id] = id(process)

    def arrives(self, process: "Process", message_id: str, data: bytes) -> None:
        """A message reaches the stream: what it names must be claimed in the log by now."""
        for run in from_json(data)["runs"]:
            occurrence, attempt = UUID(run["occurrence"]), run["attempt"]
            self.copies[occurrence, attempt] += 1
            self.arrived.setdefault((occurrence, attempt), self._world.loop.now)
            claims = [
                state
                for topic, state in self._history(occurrence)
                if topic == "occurrence.claimed.1" and state["attempt"] == attempt
            ]
            if not claims:
                self._world.problem(
                    f"{process.name} published {message_id}, which the log does not call claimed"
                )

    def said(self, process: "Process", delivery: Delivery, word: Word) -> None:
        """A worker lets a message go: the log must have decided on each of its runs by now."""
        if word.kind != "done":
            return
        for run in from_json(delivery.message.data)["runs"]:
            occurrence, attempt = UUID(run["occurrence"]), run["attempt"]
            row = self._world.log.tables.next_runs.get(occurrence)
            if row is None or row.run.attempt != attempt:
                continue
            # A second delivery may go while the first one is worked on.
            only = delivery.message.deliveries == 1 and self.copies[occurrence, attempt] == 1
            message_id = delivery.message.message_id
            if not only:
                continue
            if row.run.state == "claimed" and row.run.version == run["version"]:
                self._world.problem(
                    f"{process.name} acknowledged {message_id}, whose claim waits for its attempt"
                )
            elif row.run.state in ("running", "stopping"):
                self._world.problem(
                    f"{process.name} acknowledged {message_id}, whose outcome is not in the log"
                )

    def _history(self, occurrence: UUID) -> list[tuple[str, dict[str, Any]]]:
        return [(topic, state) for topic, state, _ in self._recorded(occurrence)]

    def _recorded(self, occurrence: UUID) -> list[tuple[str, dict[str, Any], datetime]]:
        """What the log ever said of it, and when: its message may come when all was pruned."""
        stored = self._world.log.tables.streams.get(occurrence) or [
            event for event in self._world.keeping.left if event.stream == occurrence
        ]
        return [(event.topic, from_json(event.state), event.recorded_at) for event in stored]

    def _problem(self, what: str, seen: Execution) -> None:
        self._world.problem(
            f"{what}: {seen.name} {seen.occurrence}, attempt {seen.attempt}, on {seen.process.name}"
        )


_ENDS = frozenset(
    f"occurrence.{name}.1" for name in ("lost", "failed", "succeeded", "snoozed", "stopped")
)
