"""One life of a scanner or of a worker: the real loops, wired to the simulated world."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.commands import NAMESPACE, LogClock
from tests.simulation.fibres import Fibre
from tests.simulation.network import (
    Blocking,
    BlockingLog,
    BlockingWire,
    Wire,
    WiredLog,
    WiredReadyQueue,
)
from tests.simulation.transactions import DrainsOverWire, draining
from tests.simulation.virtual_time import Process
from tests.simulation.watchfulness import WiredAlerts, WiredMisses

from horolog.application.commands.context import Context
from horolog.application.decision import Decision
from horolog.application.inbox.draining import Draining
from horolog.application.log import Appended, Verdict
from horolog.application.scanner.assembly import Adapters, assemble
from horolog.application.scanner.scanner import Scanner
from horolog.application.worker.heartbeats import Extended
from horolog.application.worker.held import Word
from horolog.application.worker.transactions import CommitUnknown
from horolog.application.worker.worker import WorkerLoop, WorkerPorts
from horolog.domain.errors import QueueUnavailable, StoreUnavailable
from horolog.domain.occurrence import OccurrenceState
from horolog.infrastructure.simulated.attempt_leases import (
    SimulatedAttemptLeases,
    SimulatedCounts,
    SimulatedPresence,
)
from horolog.infrastructure.simulated.leases import SimulatedLeases
from horolog.infrastructure.simulated.ready_queue import SimulatedReadySource
from horolog.infrastructure.simulated.ready_stream import Delivery
from horolog.infrastructure.simulated.results import SimulatedResults
from horolog.infrastructure.simulated.scanner_index import SimulatedScannerIndex

if TYPE_CHECKING:
    from tests.simulation.world import World


class Machine(Process):
    """A process with a clock of its own, in whose speed and start it differs from all others."""

    def __init__(self, name: str, world: "World", *, drift: float, started_at: float) -> None:
        super().__init__(name)
        self.world = world
        self.stop = asyncio.Event()
        self._drift = 1.0 + drift
        self._start = started_at
        self.stood_s = 0.0
        """For how long its clock stood still, with the machine."""
        self.wall_offset_s = 0.0
        self.troubled_at: list[float] = []
        """When it was frozen, told to stop, or ended."""

    def monotonic(self) -> float:
        return self._start + (self.world.loop.now - self.stood_s) * self._drift

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        if event.is_set():
            await asyncio.sleep(0)
            return
        try:
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            return

    def wall(self) -> float:
        """The time of day, in seconds, as this machine believes it to be."""
        return self.world.loop.now + self.wall_offset_s

    def wire(self, server: Any, use: str) -> Wire:
        return Wire(self.world, self, server, use)

    async def run(self) -> None:
        raise NotImplementedError


class News:
    """As :class:`HearsNews` promises: told late, or not at all; and told when it connects again."""

    def __init__(self, machine: Machine, channel: str) -> None:
        self._machine = machine
        self._channel = channel
        self._wire = machine.wire("log", f"news/{channel}")

    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        world, machine = self._machine.world, self._machine

        def told(channel: str, payload: str) -> None:
            if channel != self._channel or not machine.alive:
                return
            if self._wire.is_cut() or self._wire.befalls("news_lost"):
                return
            for _ in range(2 if self._wire.befalls("news_doubled") else 1):
                world.after(self._wire.delay_s(), heard, payload, process=machine)

        def calmed(kind: str) -> None:
            if kind in ("log_away", "log_cut"):
                world.after(self._wire.delay_s(), connected, process=machine)

        world.log.listeners.append(told)
        world.weather.calmed.append(calmed)
        try:
            connected()
            await stop.wait()
        finally:
            world.log.listeners.remove(told)
            world.weather.calmed.remove(calmed)


class ScannerMachine(Machine):
    """A scanner."""

    scanner: Scanner | None = None

    async def run(self) -> None:
        world = self.world

        def index(use: str) -> SimulatedScannerIndex:
            return SimulatedScannerIndex(world.log, world.states, self.wire("log", use))

        leases = self.wire("log", "leases")
        alerts = WiredAlerts(world.watchfulness, self.wire("log", "alerts"))
        adapters = Adapters(
            log=WiredLog(world.log, self.wire("log", "claims"), news_horizon_s=0.0),
            elections=WiredLog(world.log, leases, news_horizon_s=0.0),
            index=index("reads"),
            looks=index("looks"),
            leases=SimulatedLeases(world.log, leases),
            queue=WiredReadyQueue(self.wire("queue", "queue")),
            news=News(self, "due"),
            misses=WiredMisses(world.watchfulness, self.wire("log", "misses")),
            alerts=alerts,
            notices=alerts,
            inbox=DrainsOverWire(world, self._draining()),
            clock=self,
        )
        self.scanner = assemble(
            self.name, adapters, world.plan.scanner_settings, namespace=NAMESPACE
        )
        await self.scanner.run(self.stop)

    def _draining(self) -> Draining:
        world, link = self.world, BlockingWire(self.wire("log", "inbox"))
        states: Any = Blocking(world.states, link)
        context = Context(
            log=BlockingLog(world.log, link),
            states=states,
            clock=LogClock(world, link),
            entropy=world.client,
            namespace=NAMESPACE,
            partitions=len(world.log.tables.partitions),
            actor="scanner",
        )
        return draining(world.inbox, link, context)


class WorkerMachine(Machine):
    """A worker."""

    async def run(self) -> None:
        world, settings = self.world, self.world.plan.worker_settings
        logged = self.wire("log", "log")
        heart = BlockingWire(self.wire("log", "heart"))
        ready = Source(self)
        try:
            await ready.start()
        except QueueUnavailable:
            return  # as promised; whoever looks after the process starts it again
        try:
            ports = WorkerPorts(
                ready=ready,
                log=WiredLog(world.log, logged, news_horizon_s=world.plan.news_horizon_s),
                occurrences=Occurrences(world, self.wire("log", "reads")),
                leases=Leases(self, heart),
                presence=SimulatedPresence(heart),
                transactions=Transactions(self),
                results=SimulatedResults(world.log),
                counts=SimulatedCounts(world.log, heart),
                stops=News(self, "stop"),
                clock=self,
                beat=Beat(self),
                threads=FibreThreads(settings.threads),
            )
            handlers = world.handlers_of(self)
            handlers.prepare()
            await WorkerLoop(handlers, ports, settings, f"worker/{self.name}").run(self.stop)
        finally:
            await ready.close()


class Source(SimulatedReadySource):
    """What a worker says to the queue gets there late, twice, or not at all."""

    def __init__(self, machine: Machine) -> None:
        self._wire = machine.wire("queue", "pulls")
        self._machine = machine
        super().__init__(
            machine.world.stream,
            None,
            machine.wall,
            self._wire,
            linger_s=machine.world.plan.linger_s,
        )

    def say(self, delivery: Delivery, word: Word) -> None:
        world, wire = self._machine.world, self._wire
        world.witness.said(self._machine, delivery, word)
        if wire.is_cut() or wire.befalls("words_lost"):
            return
        for _ in range(2 if wire.befalls("words_doubled") else 1):
            world.after(wire.delay_s(), super().say, delivery, word)


class Leases(SimulatedAttemptLeases):
    """What a worker hears of its attempts, the witness hears too."""

    def __init__(self, machine: Machine, link: BlockingWire) -> None:
        super().__init__(machine.world.log, link)
        self._machine = machine

    def extend(self, attempts: Sequence[tuple[UUID, int]], lease_s: float) -> Extended:
        asked = list(attempts)
        answer = super().extend(asked, lease_s)
        self._machine.world.witness.told(self._machine, asked, answer.held)
        return answer


class Occurrences:
    """As :class:`ReadsOccurrence` promises."""

    def __init__(self, world: "World", link: Wire) -> None:
        self._world = world
        self._link = link

    async def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        return await self._link(lambda: self._world.states.occurrence(occurrence_id))


class Beat:
    """As :class:`KeepsBeat` promises, in simulated time; a beat itself takes none."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, beat: Callable[[], None], interval_s: float, last: Callable[[], None]) -> None:
        self._task = self._machine.world.loop.create_task(self._beat(beat, interval_s, last))

    def end(self) -> None:
        self._stop.set()

    async def stop(self) -> None:
        self.end()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=5.0)

    async def _beat(
        self, beat: Callable[[], None], interval_s: float, last: Callable[[], None]
    ) -> None:
        while not self._stop.is_set():
            beat()
            await self._machine.wait(self._stop, interval_s)
        last()


class FibreThreads:
    """As :class:`RunsCalls` promises: ``size`` fibres."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._calls: deque[Callable[[], None]] = deque()

    def submit(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        self._next()

    def close(self) -> None:
        return

    def _next(self) -> None:
        if self._free <= 0 or not self._calls:
            return
        self._free -= 1
        call = self._calls.popleft()

        def done(result: Any, error: BaseException | None) -> None:
            self._free += 1
            if error is not None:
                raise error
            self._next()

        Fibre(call, done).start()


class Transaction:
    """An open transaction: ``connection`` collects effects, which the commit makes true."""

    def __init__(self, machine: Machine) -> None:
        self.connection: list[UUID] = []
        self._machine = machine

    def commit(self, decision: Decision) -> Appended:
        appended = self._machine.world.log.append([decision])
        if appended.verdicts == ["accepted"]:
            self._machine.world.witness.commit(self.connection)
        return appended


class BlockingTransaction(Transaction):
    def __init__(self, machine: Machine, link: BlockingWire) -> None:
        super().__init__(machine)
        self._link = link

    def succeed(self, decision: Decision) -> Verdict:
        try:
            return self._link(lambda: self.commit(decision)).verdicts[0]
        except StoreUnavailable as error:
            raise CommitUnknown(str(error)) from error


class AwaitedTransaction(Transaction):
    def __init__(self, machine: Machine, link: Wire) -> None:
        super().__init__(machine)
        self._link = link

    async def succeed(self, decision: Decision) -> Verdict:
        try:
            return (await self._link(lambda: self.commit(decision))).verdicts[0]
        except StoreUnavailable as error:
            raise CommitUnknown(str(error)) from error


class Transactions:
    """As :class:`horolog.application.worker.transactions.Transactions` promises."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._count = 0

    @contextmanager
    def begin(self) -> Generator[BlockingTransaction]:
        link = BlockingWire(self._wire())
        link(lambda: None)
        yield BlockingTransaction(self._machine, link)

    @asynccontextmanager
    async def begin_async(self) -> AsyncGenerator[AwaitedTransaction]:
        wire = self._wire()
        await wire(lambda: None)
        yield AwaitedTransaction(self._machine, wire)

    def _wire(self) -> Wire:
        self._count += 1
        return self._machine.wire("log", f"transaction/{self._count}")
