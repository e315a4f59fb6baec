"""The simulated network: the ways of a process to the log and the queue, and what befalls them.

A request travels, is done at the server, and its answer travels back: each takes its time, and
each can be lost. A process that is frozen or dead does not hear answers; what it had sent is done
all the same. Calls of one link go one after the other, as those of a thread of their own do.
"""

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tests.simulation.fibres import current_fibre
from tests.simulation.virtual_time import Process

from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences, Recorded, Verdict
from horolog.application.scanner.outbox import Message
from horolog.domain.errors import HorologError, QueueUnavailable, StoreUnavailable
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.ready_queue import SimulatedReadyQueue
from horolog.infrastructure.simulated.ready_stream import Stored

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
Server = Literal["log", "queue"]
Reply = Callable[[Any, BaseException | None], None]

_AWAY: dict[Server, type[HorologError]] = {"log": StoreUnavailable, "queue": QueueUnavailable}
_PATIENCE_S = 2.0
"""How long a request waits for an answer that does not come."""


class Wire:
    """One connection of a process to a server."""

    def __init__(self, world: "World", process: Process, server: Server, use: str) -> None:
        self.world = world
        self.process = process
        self._server: Server = server
        self._random = Random(f"{world.plan.seed}/{process.name}/{server}/{use}")
        self._waiting: deque[tuple[Callable[[], Any], Reply]] = deque()
        self._busy = False

    def request(self, work: Callable[[], Any], reply: Reply) -> None:
        """Has ``work`` done at the server; ``reply`` is called in the process, once or never."""
        self._waiting.append((work, reply))
        if not self._busy:
            self._send()

    async def __call__(self, work: Callable[[], T]) -> T:
        future = self.world.loop.create_future()

        def reply(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.request(work, reply)
        return await future

    def at_once(self, work: Callable[[], T]) -> T:
        """A request that takes no time; it may be lost, and so may its answer."""
        error = _AWAY[self._server]
        if self.is_cut() or self.befalls(f"{self._server}_requests_lost"):
            raise error("the simulated server is away")
        result = work()
        if self.befalls(f"{self._server}_answers_lost"):
            raise error("the answer was cut off")
        return result

    def delay_s(self) -> float:
        """How long one way takes now."""
        chance = self._random.random()
        delay = 0.0002 + 0.003 * chance
        if chance > 0.99:
            delay += self._random.random()
        slow = self.world.weather.amount(f"slow_{self._server}", self.process.name)
        return delay + slow * self._random.random() if slow else delay

    def is_cut(self) -> bool:
        weather, name = self.world.weather, self.process.name
        return bool(
            weather.amount(f"{self._server}_away", name)
            or weather.amount(f"{self._server}_cut", name)
        )

    def befalls(self, kind: str) -> bool:
        """Whether a trouble of this kind strikes now."""
        chance = self.world.weather.amount(kind, self.process.name)
        return chance > 0 and self._random.random() < chance

    def _send(self) -> None:
        self._busy = True
        work, reply = self._waiting.popleft()
        self.world.after(self.delay_s(), self._arrive, work, reply)

    def _arrive(self, work: Callable[[], Any], reply: Reply) -> None:
        error = _AWAY[self._server]
        if self.is_cut():
            late = self.delay_s() if self._random.random() < 0.5 else _PATIENCE_S
            self._back(late, reply, None, error("the simulated server is away"))
            return
        if self.befalls(f"{self._server}_requests_lost"):
            self._back(_PATIENCE_S, reply, None, error("the request was lost"))
            return
        result, raised = None, None
        try:
            result = work()
        except HorologError as refused:
            raised = refused
        except Exception as failed:  # noqa: BLE001 - what the adapter raises is the caller's
            raised = failed
        if self.befalls(f"{self._server}_answers_lost"):
            self._back(_PATIENCE_S, reply, None, error("the answer was cut off"))
        else:
            self._back(self.delay_s(), reply, result, raised)

    def _back(self, delay_s: float, reply: Reply, result: Any, error: BaseException | None) -> None:
        self.world.after(delay_s, self._hear, reply, result, error, process=self.process)

    def _hear(self, reply: Reply, result: Any, error: BaseException | None) -> None:
        self._busy = False
        if self._waiting:
            self._send()
        reply(result, error)


class BlockingWire:
    """The same connection for code that blocks. In a fibre its calls take their time; outside of
    one they are done at once, and only fail as others do."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __call__(self, work: Callable[[], T]) -> T:
        fibre = current_fibre()
        if fibre is None:
            return self._wire.at_once(work)
        self._wire.request(work, fibre.answer)
        return fibre.wait()


class Blocking:
    """All methods of ``target``, called over a wire."""

    def __init__(self, target: object, link: BlockingWire) -> None:
        self._target = target
        self._link = link

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._link(lambda: method(*args, **kwargs))

        return call


# An append whose answer was cut off is sent again, and recognised: as the adapter of Postgres does.


def recognised(
    log: SimulatedLog, decisions: Sequence[Decision], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """What was refused and stands in the log, byte for byte, was ours."""

    def ours(decision: Decision) -> bool:
        stored = {
            (e.stream, e.version): (e.topic, e.state)
            for new in decision.events
            for e in log.tables.streams.get(new.stream, ())
        }
        return bool(decision.events) and all(
            stored.get((e.stream, e.version)) == (e.event.topic, e.event.to_json())
            for e in decision.events
        )

    return [
        "accepted" if verdict != "accepted" and ours(decision) else verdict
        for decision, verdict in zip(decisions, verdicts, strict=True)
    ]


class WiredLog:
    """The log as a process has it. ``news_horizon_s`` as in the adapter of Postgres."""

    def __init__(self, log: SimulatedLog, link: Wire, *, news_horizon_s: float) -> None:
        self._log = log
        self._link = link
        self._news_horizon_s = news_horizon_s

    async def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        batch = list(decisions)
        try:
            return await self._link(lambda: self._append(batch, fences))
        except StoreUnavailable:
            appended = await self._link(lambda: self._append(batch, fences))
            if all(verdict == "accepted" for verdict in appended.verdicts):
                return appended
            verdicts = await self._link(lambda: recognised(self._log, batch, appended.verdicts))
            return Appended(verdicts, appended.position, appended.recorded_at)

    def _append(self, decisions: list[Decision], fences: Fences | None) -> Appended:
        return self._log.append(decisions, fences, news_horizon_s=self._news_horizon_s)

    async def stream(self, stream: Any, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        return await self._link(lambda: self._log.stream(stream, after=after, limit=limit))


class BlockingLog:
    """The same for a client."""

    def __init__(self, log: SimulatedLog, link: BlockingWire) -> None:
        self._log = log
        self._link = link

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        batch = list(decisions)
        try:
            return self._link(lambda: self._log.append(batch, fences))
        except StoreUnavailable:
            appended = self._link(lambda: self._log.append(batch, fences))
            verdicts = self._link(lambda: recognised(self._log, batch, appended.verdicts))
            return Appended(verdicts, appended.position, appended.recorded_at)

    def __getattr__(self, name: str) -> Any:
        return getattr(Blocking(self._log, self._link), name)


class WiredReadyQueue(SimulatedReadyQueue):
    """Publishing where single messages and answers are lost, each for itself."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire.world.stream, wire)
        self._wire = wire

    async def publish(self, messages: Sequence[Message]) -> Any:
        self._wire.world.witness.publishing(self._wire.process, messages)
        receipts = await super().publish(messages)
        self._wire.world.witness.published(self._wire.process, messages, receipts)
        return receipts

    async def _sent(
        self, outgoing: Sequence[tuple[str, str, bytes]]
    ) -> Sequence[tuple[Stored, int] | None]:
        wire = self._wire

        def send() -> list[tuple[Stored, int] | None]:
            answers: list[tuple[Stored, int] | None] = []
            for message in outgoing:
                if wire.befalls("messages_lost"):
                    answers.append(None)
                    continue
                wire.world.witness.arrives(wire.process, message[1], message[2])
                answer = wire.world.stream.publish(*message)
                answers.append(None if wire.befalls("confirmations_lost") else answer)
            return answers

        return await wire(send)
