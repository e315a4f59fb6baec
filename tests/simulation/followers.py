"""A user's projection in a simulated world: its runners, its place in the log, what it has written.

The runners are the real loop in fibres. The place is as Postgres keeps it: one connection has the
lock, and what is written is committed together with the place. A dead runner's lock is free at
once; a frozen one keeps it.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar

from tests.simulation.fibres import current_fibre
from tests.simulation.network import BlockingLog, BlockingWire
from tests.simulation.processes import Machine

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.projecting.place import Overtaken
from horolog.application.projecting.projection import Projection
from horolog.application.projecting.running import Bounds, Running
from horolog.application.queries.following import Follower
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.simulated.tables import StoredEvent

POLL_UNITS = 10.0
LAG_UNITS = 25.0
STUBBORN = 53
"""Every so many positions there is an event that is refused at first."""


@dataclass
class View:
    """The user's table at the server: the position of each event that was applied, as it came."""

    place: int | None = None
    written: list[int] = field(default_factory=list[int])
    holder: tuple[Machine, object] | None = None

    def problems(self, events: Sequence[StoredEvent], now: datetime, tempo: float) -> list[str]:
        """What it differs in from the log, all of which it has seen by now but for the last look at
        it."""
        lately = now - timedelta(seconds=LAG_UNITS * tempo)
        there = self.place or 0
        positions = [e.position for e in events if e.position <= there or e.recorded_at < lately]
        if self.place is None or self.written == positions:
            return []
        doubled = [at for at, count in Counter(self.written).items() if count > 1]
        missed = sorted(set(positions) - set(self.written))
        if not doubled and not missed:
            return ["the projection has applied the events in another order"]
        return [
            f"the projection has doubled {doubled[:5]}, missed {missed[:5]}: it is at {self.place}"
        ]


class Place:
    """As :class:`horolog.application.projecting.place.KeepsPlace` promises, over a wire."""

    def __init__(self, view: View, machine: Machine, link: BlockingWire) -> None:
        self._view = view
        self._machine = machine
        self._link = link
        self._session = object()

    def take(self) -> bool:
        session = self._session = object()
        return self._link(lambda: self._lock(session))

    def _lock(self, session: object) -> bool:
        holder = self._view.holder
        if holder is not None and holder[0].alive:
            return False
        self._view.holder = (self._machine, session)
        return True

    def release(self) -> None:
        """The connection ends, and with it whatever it had in hand."""
        holder = self._view.holder
        if holder is not None and holder[1] is self._session:
            self._view.holder = None

    def position(self, begin: int) -> int:
        session = self._session
        return self._link(lambda: self._position(session, begin))

    def _position(self, session: object, begin: int) -> int:
        self._must_hold(session)
        if self._view.place is None:
            self._view.place = begin
        return self._view.place

    def _must_hold(self, session: object) -> None:
        holder = self._view.holder
        if holder is None or holder[1] is not session:
            raise StoreUnavailable("the connection has ended")

    @contextmanager
    def standing(self) -> Generator[list[int]]:
        yield []
        session = self._session
        self._link(lambda: self._must_hold(session))

    @contextmanager
    def moved(self, position: int) -> Generator[list[int]]:
        session, rows = self._session, list[int]()
        self._link(lambda: self._may_move(session, position))
        yield rows
        self._link(lambda: self._commit(session, position, rows))

    def _may_move(self, session: object, position: int) -> None:
        self._must_hold(session)
        if self._view.place is not None and self._view.place >= position:
            raise Overtaken(f"it has been at position {position}")

    def _commit(self, session: object, position: int, rows: list[int]) -> None:
        self._must_hold(session)
        self._view.place = position
        self._view.written += rows

    @contextmanager
    def forget(self) -> Generator[list[int]]:
        raise NotImplementedError
        yield []


class Ledger(Projection):
    """Writes down each event, some of them only when asked again."""

    name: ClassVar[str] = "ledger"

    def __init__(self) -> None:
        self._refused: Counter[int] = Counter()

    def apply(self, event: LoggedEvent, view: Any) -> None:
        if event.position % STUBBORN == 0 and self._refused[event.position] < 2:
            self._refused[event.position] += 1
            raise ValueError("not now")
        view.append(event.position)


class Polling:
    """As :class:`horolog.application.queries.ports.WaitsForEvents` promises, of a deaf one."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def wait(self, timeout_s: float) -> None:
        sleep(self._machine, timeout_s)

    def close(self) -> None:
        return


def sleep(machine: Machine, seconds: float) -> None:
    """In a fibre of the machine."""
    fibre = current_fibre()
    assert fibre is not None
    machine.world.after(seconds, fibre.answer, None, process=machine)
    fibre.wait()


class FollowerMachine(Machine):
    """A process that runs the projection, or stands by while another one does."""

    async def run(self) -> None:
        world, link = self.world, BlockingWire(self.wire("log", "following"))
        log: Any = BlockingLog(world.log, link)
        poll_s = POLL_UNITS * world.plan.tempo

        def follow(after: int) -> Follower:
            return Follower(
                log, Polling(self), after=after, poll_s=poll_s, pause=lambda s: sleep(self, s)
            )

        running = Running(
            Ledger(),
            Place(world.view, self, link),
            follow,
            bounds=Bounds(batch=7),
            stopping=self.stop.is_set,
            pause=lambda s: sleep(self, s),
        )
        future = world.loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)

        world.fibre(running.run, done)
        await future
