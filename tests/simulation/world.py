"""A simulated world: a log, a queue, scanners, workers, a user, and what a plan does to them.

    the plan's actions ─▶ troubles for a while, then all is healed
    heal               ─▶ every process runs, every service answers: the backlog is worked off
    rest               ─▶ all jobs are paused; what is unfinished ends

Then the log is closed, and judged: see :mod:`tests.simulation.judging`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Any

from tests.simulation.commands import NAMESPACE, Client
from tests.simulation.fibres import Fibre
from tests.simulation.followers import FollowerMachine, View
from tests.simulation.handlers import handlers_of
from tests.simulation.keeping import Keeping
from tests.simulation.plans.plan import COMMANDS, Action, Plan
from tests.simulation.processes import Machine, ScannerMachine, WorkerMachine
from tests.simulation.transactions import Inbox
from tests.simulation.virtual_time import Process, Stuck, VirtualLoop
from tests.simulation.watchfulness import Watchfulness
from tests.simulation.weather import Weather
from tests.simulation.witness import Witness

from horolog.application.worker.handlers import Handlers
from horolog.domain.errors import HorologError, StoreUnavailable
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.ready_stream import SimulatedStream
from horolog.infrastructure.simulated.states import SimulatedStates

LONGEST_REST_UNITS = 6_000.0
"""How long what is unfinished may take to end once all is well."""

INSPECT_UNITS = 5.0

INSTANT = frozenset(
    {
        "delete_stream", "purge_stream", "lose_end", "delete_consumer", "deliver_again",
        "log_clock_step", "wall_clock_step",
    }
)  # fmt: skip
PROCESSES = frozenset({"crash", "freeze", "suspend", "stop", "all_away"})


@dataclass(slots=True)
class Order:
    """A command, and what the user was told; ``answer`` is "" while nothing was."""

    action: Action
    began: datetime
    ended: datetime | None = None
    answer: str = ""
    result: Any = None


@dataclass
class Counts:
    """What happened in the world beside the log."""

    troubles: dict[str, int] = field(default_factory=dict[str, int])
    processes: int = 0

    def count(self, kind: str) -> None:
        self.troubles[kind] = self.troubles.get(kind, 0) + 1


class World:
    """Made from a plan; :meth:`run` goes through it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.problems: list[str] = []
        self.counts = Counts()
        self.orders: list[Order] = []
        self.loop = VirtualLoop(Random(f"order {plan.seed}"), self._failed)
        self.weather = Weather()
        self._clock_ahead = timedelta()
        self._clock_steps: list[tuple[datetime, float]] = []
        """What the log's clock said after each of its steps, and how far that went."""
        self.log = SimulatedLog(
            self.now, namespace=NAMESPACE, partitions=plan.partitions, keeps_lanes=True
        )
        self.states = SimulatedStates(self.log)
        self.stream = SimulatedStream(lambda: self.loop.now, plan.stream_bounds)
        self.witness = Witness(self)
        self.inbox = Inbox(self)
        self.watchfulness = Watchfulness(self)
        self.view = View()
        self.keeping = Keeping(self)
        self.client = Client(self)
        self.healed_at: datetime | None = None
        self.rested_at: datetime | None = None
        self._machines: dict[str, Machine] = {}
        self.scanners_alive: list[tuple[float, int]] = []
        """How many there were, from when on."""
        self.lives: dict[str, Machine] = {}
        """Every process that there ever was."""
        self._lives: dict[str, int] = {}
        self._kept_away: dict[str, int] = {}
        self._fibres: list[Fibre] = []
        self._random = Random(f"world {plan.seed}")

    # What everybody in it uses.

    def now(self) -> datetime:
        """The log's clock: the one that counts."""
        return self.plan.start + timedelta(seconds=self.loop.now) + self._clock_ahead

    def seconds_at(self, said: datetime) -> float:
        """When the log's clock said so, in the world's seconds: its steps left out."""
        stepped = sum(seconds for after, seconds in self._clock_steps if after <= said)
        return (said - self.plan.start).total_seconds() - stepped

    def after(
        self,
        delay_s: float,
        function: Callable[..., object],
        *args: Any,
        process: Process | None = None,
    ) -> None:
        """Has something done later, in a process or outside of all."""
        context = (process or self.loop.outside).context
        self.loop.call_later(delay_s, function, *args, context=context.copy())

    def fibre(
        self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        fibre = Fibre(function, done)
        self._fibres.append(fibre)
        if len(self._fibres) > 500:
            self._fibres = [fibre for fibre in self._fibres if not fibre.ended]
        fibre.start()

    def problem(self, what: str) -> None:
        """Something that must never be."""
        self.problems.append(f"{self.loop.now:.3f} s: {what}")

    def handlers_of(self, machine: Machine) -> Handlers:
        return handlers_of(machine)

    def _failed(self, process: Process | None, error: BaseException) -> None:
        self.problem(f"{process} raised {type(error).__name__}: {error}")

    # The run.

    def run(self) -> None:
        """Everything, to the end."""
        plan = self.plan
        try:
            for number in range(plan.scanners):
                self._start(f"scanner-{number}")
            for number in range(plan.workers):
                self._start(f"worker-{number}")
            for number in range(plan.followers):
                self._start(f"follower-{number}")
            for action in plan.actions:
                self.after(action.at, self._do, action)
            self._inspect()
            self.loop.run_until(plan.length_s)
            self._heal()
            self._rest()
        except Stuck as stuck:
            self.problem(str(stuck))
        finally:
            self.close()

    def _inspect(self) -> None:
        """Now and then: what may not be claimed is not in the index. A scanner that is given such
        rows reads them for ever, and the world would go on with it for hours."""
        tables = self.log.tables
        for identity, row in tables.jobs.items():
            if row.status != "active" and identity in tables.next_runs:
                self.loop.given_up = f"job {identity} is {row.status}, and is in the index"
        self.after(INSPECT_UNITS * self.plan.tempo, self._inspect)

    def _heal(self) -> None:
        self.weather.clear()
        self.stream.bounds = self.plan.stream_bounds
        self._kept_away.clear()
        for machine in self._machines.values():
            machine.fuse = None
            if machine.paused:
                self.loop.resume(machine)
        plan = self.plan
        for role, count in (
            ("scanner", plan.scanners), ("worker", plan.workers), ("follower", plan.followers),
        ):  # fmt: skip
            for number in range(count):
                self._start(f"{role}-{number}")
        for lifted in ("default", "mail"):
            what = {"queue": lifted, "limit": None, "rate": None}
            self._command(Action(self.loop.now, "limit_queue", what=what))
        # A takeover, and a sweep or two.
        self.healed_at = self.now()
        self.loop.run_until(self.loop.now + 45.0 * self.plan.tempo + 60.0)

    def _rest(self) -> None:
        """All jobs are paused; then everything that is unfinished must end."""
        tables = self.log.tables
        for _ in range(50):
            active = [row for row in tables.jobs.values() if row.status == "active"]
            if not active:
                break
            for row in active:
                numbers = [n for n, i in self.client.jobs.items() if i == row.id]
                self.client.jobs.setdefault(int((row.key or "-0").partition("-")[2]), row.id)
                number = numbers[0] if numbers else int((row.key or "-0").partition("-")[2])
                self._command(Action(self.loop.now, "pause", what={"job": number}))
            self.loop.run_until(self.loop.now + 5.0)
        self.rested_at = self.now()
        until = self.loop.now + LONGEST_REST_UNITS * self.plan.tempo
        while self.loop.now < until and self._unfinished():
            self.loop.run_until(self.loop.now + 20.0 * self.plan.tempo)
        # The last words, acknowledgements and heartbeats.
        self.loop.run_until(self.loop.now + 30.0 * self.plan.tempo)
        self._nothing_is_on_its_way()

    def _nothing_is_on_its_way(self) -> None:
        """What a scanner counts as on its way to the queue, it never looks for there."""
        for machine in self._machines.values():
            if machine.alive and isinstance(machine, ScannerMachine) and machine.scanner:
                count = len(machine.scanner.parts.outbox)
                if count:
                    self.problem(f"{machine.name} has {count} runs on their way for ever")

    def _unfinished(self) -> bool:
        return any(row.run.kind != "job" for row in self.log.tables.next_runs.values())

    def close(self) -> None:
        for fibre in self._fibres:
            if not fibre.ended:
                fibre.end()
        self.loop.close()

    def digest(self) -> str:
        """One number for the whole log."""
        digest = sha256()
        for event in self.log.tables.events:
            line = f"{event.position} {event.recorded_at} {event.stream} {event.version}"
            digest.update(f"{line} {event.topic} ".encode() + event.state)
        return digest.hexdigest()

    # What is done to it.

    def _do(self, action: Action) -> None:
        self.counts.count(action.kind)
        if action.kind in COMMANDS:
            self._command(action)
        elif action.kind in PROCESSES or action.kind in INSTANT:
            getattr(self, f"_{action.kind}")(action)
        elif action.kind == "full":
            self.stream.bounds = self.stream.bounds.model_copy(
                update={"max_messages": int(action.amount)}
            )
            self.after(action.seconds, self._not_full)
        else:
            trouble = (action.kind, action.target, action.amount)
            self.weather.begin(*trouble)
            self.after(action.seconds, self.weather.end, *trouble)

    def _command(self, action: Action) -> None:
        order = Order(action, self.now())
        self.orders.append(order)
        work = self.client.command(action)

        def done(result: Any, error: BaseException | None) -> None:
            order.ended = self.now()
            order.result = result
            order.answer = "done" if error is None else type(error).__name__
            if error is not None and not isinstance(error, HorologError):
                self.problem(f"{action.kind} raised {type(error).__name__}: {error}")
            if isinstance(error, StoreUnavailable) and action.kind in ("register", "pause"):
                # A user who is not told tries again.
                self.after(1.0, self._command, action)

        self.after(0.0, self.fibre, work, done, process=self.client)

    # Processes.

    def _start(self, name: str) -> None:
        present = self._machines.get(name)
        if (present is not None and present.alive) or self._kept_away.get(name):
            return
        life = self._lives[name] = self._lives.get(name, 0) + 1
        machine = KINDS[name.partition("-")[0]](
            f"{name}.{life}",
            self,
            drift=self._random.uniform(-1, 1) * MOST_DRIFT / self.plan.tempo,
            started_at=self._random.uniform(0.0, 1e6),
        )
        self._machines[name] = self.lives[machine.name] = machine
        self.counts.processes += 1
        self._count_scanners()
        task = self.loop.start(machine, machine.run())
        task.add_done_callback(lambda _: self._ended(name, machine, task))

    def _ended(self, name: str, machine: Machine, task: Any) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.problem(f"{machine.name} ended: {_flat(error)}")
        machine.troubled_at.append(self.loop.now)
        self.loop.crash(machine)
        self._count_scanners()
        if self._machines.get(name) is machine and self.healed_at is not None:
            self.after(1.0, self._start, name)

    def _count_scanners(self) -> None:
        alive = sum(m.alive for n, m in self._machines.items() if n.startswith("scanner"))
        self.scanners_alive.append((self.loop.now, alive))

    def _by_name(self, target: str) -> list[tuple[str, Machine]]:
        found = sorted(self._machines.items())
        return [(name, m) for name, m in found if name.startswith(target) and m.alive]

    def crash(self, machine: Machine, why: str, *, away_s: float = 0.0) -> None:
        """It is gone at once; another one starts in its place after a while."""
        del why
        if not machine.alive:
            return
        machine.troubled_at.append(self.loop.now)
        self.loop.crash(machine)
        self._count_scanners()
        name = machine.name.partition(".")[0]
        self.after(max(away_s, 0.5), self._start, name)

    def pause(self, machine: Machine, seconds: float, *, stands: bool = False) -> None:
        """It is frozen for a while, and its clock too where it ``stands``."""
        if not machine.alive or machine.paused:
            return
        machine.troubled_at.append(self.loop.now)
        self.loop.pause(machine)

        def resume() -> None:
            if machine.alive and machine.paused:
                if stands:
                    machine.stood_s += seconds
                self.loop.resume(machine)

        self.after(seconds, resume)

    def _crash(self, action: Action) -> None:
        for _, machine in self._by_name(action.target):
            machine.set_fuse(
                int(action.amount),
                lambda machine=machine: self.crash(machine, "plan", away_s=action.seconds),
            )

    def _freeze(self, action: Action, *, stands: bool = False) -> None:
        for _, machine in self._by_name(action.target):
            machine.set_fuse(
                int(action.amount),
                lambda machine=machine: self.pause(machine, action.seconds, stands=stands),
            )

    def _suspend(self, action: Action) -> None:
        self._freeze(action, stands=True)

    def _stop(self, action: Action) -> None:
        """A graceful end, and a start some time after it."""
        for name, machine in self._by_name(action.target):
            machine.troubled_at.append(self.loop.now)
            self.after(0.0, machine.stop.set, process=machine)
            self._keep_away(name, action.seconds + 60.0 * self.plan.tempo)

    def _all_away(self, action: Action) -> None:
        for name, machine in self._by_name(action.target):
            self.crash(machine, "plan")
            self._keep_away(name, action.seconds)

    def _keep_away(self, name: str, seconds: float) -> None:
        self._kept_away[name] = self._kept_away.get(name, 0) + 1

        def back() -> None:
            if self._kept_away.get(name):
                self._kept_away[name] -= 1
                self._start(name)

        self.after(seconds, back)

    # The queue and the clocks.

    def _delete_stream(self, action: Action) -> None:
        self.stream.delete()

    def _purge_stream(self, action: Action) -> None:
        self.stream.purge()

    def _lose_end(self, action: Action) -> None:
        self.stream.lose_end(int(action.amount))

    def _delete_consumer(self, action: Action) -> None:
        self.stream.delete_consumer(action.target)

    def _deliver_again(self, action: Action) -> None:
        self.stream.deliver_again()

    def _not_full(self) -> None:
        self.stream.bounds = self.plan.stream_bounds

    def _log_clock_step(self, action: Action) -> None:
        self._clock_ahead += timedelta(seconds=action.amount)
        self._clock_steps.append((self.now(), action.amount))

    def _wall_clock_step(self, action: Action) -> None:
        for _, machine in self._by_name(action.target):
            machine.wall_offset_s += action.amount


KINDS: dict[str, type[Machine]] = {
    "scanner": ScannerMachine,
    "worker": WorkerMachine,
    "follower": FollowerMachine,
}

MOST_DRIFT = 0.0
"""By how much the speed of a machine's clock may differ from that of the log's."""


def _flat(error: BaseException) -> str:
    inner: Sequence[BaseException] = getattr(error, "exceptions", ())
    if inner:
        return "; ".join(_flat(each) for each in inner)
    return f"{type(error).__name__}: {error}"
