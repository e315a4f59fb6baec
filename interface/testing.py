"""``SimulatedScheduler``: the scheduler for tests, without a server and with a clock by hand.

    from horolog.testing import SimulatedScheduler

    def test_a_bill_is_written_each_night() -> None:
        with SimulatedScheduler(worker, start=datetime(2027, 3, 1, tzinfo=UTC)) as scheduler:
            scheduler.register("invoices.bill", schedule=Cron("0 2 * * *", "America/New_York"))
            scheduler.advance(days=30)
            assert len(scheduler.occurrences(state="succeeded")) == 30

The same commands, queries, deciders and judgement of handlers as in production; the log, the index
and the ready queue are in memory. It may be verified like a real one.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

from horolog.application.commands.context import Context
from horolog.application.inbox.giving import Giving
from horolog.application.simulation.leading import Leading
from horolog.application.simulation.passing import Passing
from horolog.application.simulation.performing import Connects, Performing
from horolog.application.verify import Report, verify
from horolog.application.worker.handlers import Handlers
from horolog.domain.errors import InvalidSchedule
from horolog.infrastructure.simulated.alerts import SimulatedAlerts
from horolog.infrastructure.simulated.audit import SimulatedAudit
from horolog.infrastructure.simulated.due_index import SimulatedDueIndex
from horolog.infrastructure.simulated.inbox import give_at_once
from horolog.infrastructure.simulated.lists import (
    SimulatedDeadLetterList,
    SimulatedDueNext,
    SimulatedJobList,
    SimulatedOccurrenceList,
)
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.log_scan import SimulatedLogScan
from horolog.infrastructure.simulated.orders import SimulatedOrders
from horolog.infrastructure.simulated.past import SimulatedPast
from horolog.infrastructure.simulated.queue_limits import SimulatedQueueLimits
from horolog.infrastructure.simulated.results import SimulatedResults
from horolog.infrastructure.simulated.states import SimulatedStates
from horolog.infrastructure.simulated.subjects import SimulatedKeyring
from horolog.interface.client.connected import Answer
from horolog.interface.scheduler import Scheduler
from horolog.interface.settings import Settings
from horolog.interface.wiring import Client

START = datetime(2027, 1, 1, tzinfo=UTC)
PARTITIONS = 1


class SimulatedScheduler(Scheduler):
    """A scheduler, its scanner and its worker in one, in simulated time; for one thread.

    ``worker`` holds the handlers; without one every run succeeds and returns nothing. ``start`` is
    when the clock begins (aware). ``takes`` says how many seconds the runs of a handler take, by
    its name: none, where it is not named. ``connect`` returns what ``run.connection`` is in
    handlers with ``transactional=True``. Everything else is as in :class:`Scheduler`; random ids
    come from ``seed``, so that a test that is run again is the same. A ``connection`` that commands
    are given is not used: they are carried out at once.

    ``async def`` handlers run on a loop of their own, in real time: what they await takes as long
    as it takes. Close it, or use it with ``with``.
    """

    def __init__(
        self,
        worker: Handlers | None = None,
        *,
        start: datetime = START,
        takes: Mapping[str, float] | None = None,
        connect: Connects | None = None,
        namespace: str = "simulated",
        actor: str = "simulated",
        seed: int = 0,
        reveal: bool = False,
    ) -> None:
        super().__init__(settings=Settings(None, None, Path(), namespace, actor), reveal=reveal)
        self._time = Passing(_aware("start", start))
        self._memory = SimulatedLog(self._time.now, namespace=namespace, partitions=PARTITIONS)
        self._keyring = SimulatedKeyring(self._memory.tables, namespace)
        self._performing = Performing(
            self._memory,
            SimulatedResults(self._memory, self._keyring),
            SimulatedStates(self._memory),
            worker,
            now=self._time.now,
            takes=takes or {},
            connect=connect,
            keyring=self._keyring,
        )
        leading = Leading(
            self._memory,
            SimulatedStates(self._memory),
            SimulatedDueIndex(self._memory),
            namespace=namespace,
            partitions=PARTITIONS,
        )
        self._time.connect(leading, self._performing)
        self._alerts = SimulatedAlerts(self._memory, namespace)
        self._simulated = self._wired(Random(seed))  # noqa: S311 - repeatable, not secret

    @property
    def now(self) -> datetime:
        """The present of the simulation (UTC)."""
        return self._time.now()

    def run_due(self) -> int:
        """Claims and runs all that is due now; how many runs began. The clock stays where it is."""
        return self._time.run_due()

    def advance(
        self,
        to: datetime | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> int:
        """Lets time pass until ``to`` (aware), or for so long; how many runs began.

        Everything that becomes due meanwhile is done at its own time: fires, retries, ends of runs.
        """
        return self._time.advance(self._until(to, seconds, minutes, hours, days))

    def outage(
        self,
        to: datetime | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> None:
        """Lets time pass while no scanner runs: nothing is claimed. What comes due is caught up
        afterwards, as each job's ``catch_up`` says; runs that had begun end in their time."""
        self._time.skip(self._until(to, seconds, minutes, hours, days))

    def verify(self) -> Report:
        """Checks the log against the invariants, as ``horolog verify`` does."""
        return verify(SimulatedLogScan(self._memory))

    def close(self) -> None:
        self._performing.close()

    def _connected(self) -> Client:
        return self._simulated

    def _within(
        self,
        connection: object,  # noqa: ARG002 - there is no transaction to be part of
        giving: Giving,
        answer: Callable[[Any], Answer],
    ) -> Answer:
        orders = self._simulated.orders
        return answer(give_at_once(self._simulated.context, orders, giving))

    def _until(
        self, to: datetime | None, seconds: float, minutes: float, hours: float, days: float
    ) -> datetime:
        step = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        until = self.now + step if to is None else _aware("to", to)
        if (to is not None and step) or until < self.now:
            raise InvalidSchedule(
                f"the clock of the simulation stands at {self.now.isoformat()}: give a time that"
                " lies ahead, or how long to go on"
            )
        return until

    def _wired(self, random: Random) -> Client:
        states = SimulatedStates(self._memory)
        context = Context(
            log=self._memory,
            states=states,
            clock=self._time,
            entropy=_Seeded(random),
            namespace=self.settings.namespace,
            partitions=PARTITIONS,
            actor=self.settings.actor,
            keyring=self._keyring,
        )
        return Client(
            context,
            self._memory,
            states,
            SimulatedJobList(self._memory, states),
            SimulatedOccurrenceList(self._memory),
            SimulatedDeadLetterList(self._memory),
            SimulatedOrders(self._memory),
            SimulatedQueueLimits(self._memory),
            self._alerts,
            SimulatedAudit(self._memory),
            SimulatedPast(self._memory),
            SimulatedDueNext(self._memory),
            position=lambda: self._memory.tables.last_position,
            news=_Patience,
            close=self._performing.close,
        )


class _Seeded:
    """As :class:`Entropy` promises: the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def draw(self, size: int) -> bytes:
        return self._random.randbytes(size)


class _Patience:
    """As :class:`WaitsForEvents` promises: whoever follows a simulation looks now and then."""

    def wait(self, timeout_s: float) -> None:
        sleep(min(timeout_s, 0.02))

    def close(self) -> None:
        return


def _aware(name: str, moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InvalidSchedule(f"{name}={moment.isoformat()} has no zone: add one, such as UTC")
    return moment.astimezone(UTC)
