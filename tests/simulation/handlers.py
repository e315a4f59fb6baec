"""The handlers of simulated workers: of every kind that a user may write, the bad ones too.

What a run does is drawn from the seed, its occurrence and its attempt alone, so it does the same
wherever and whenever it is run. Durations are in units of the plan's tempo.
"""

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from tests.simulation.fibres import current_fibre

from horolog.application.worker.handlers import Handlers
from horolog.application.worker.raised import Permanent, Retryable, Snooze
from horolog.application.worker.run import Run

if TYPE_CHECKING:
    from tests.simulation.processes import Machine
    from tests.simulation.witness import Execution
    from tests.simulation.world import World

MOST_SNOOZES = 2

NAMES = (
    "quick", "slow", "flaky", "poison", "killer", "stall", "snoozer", "deaf", "patient",
    "blocking", "transactional", "transactional_def", "reconciled", "beating",
)  # fmt: skip


def chance(seed: int, occurrence: UUID, attempt: int, what: str) -> float:
    """A number in [0, 1) that is always the same for the same arguments."""
    text = f"{seed}/{occurrence}/{attempt}/{what}".encode()
    return int.from_bytes(blake2b(text, digest_size=6).digest()) / (1 << 48)


class _Doing:
    """One run of a handler, under the eyes of the witness."""

    def __init__(self, machine: "Machine", run: Run, payload: dict[str, Any]) -> None:
        self._machine = machine
        self._world: World = machine.world
        self._run = run
        self.seen: Execution = self._world.witness.begin(machine, run, payload)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, _: object) -> None:
        if kind is not None and self._machine.alive:
            self._world.witness.end(self.seen, kind.__name__)

    def draw(self, what: str) -> float:
        seed = self._world.plan.seed
        return chance(seed, self._run.occurrence_id, self._run.attempt, what)

    def seconds(self, most: float) -> float:
        """A duration up to ``most`` leases of a worker, more often short than long."""
        lease_s = self._world.plan.worker_settings.lease_s
        return self.draw("seconds") ** 2 * most * lease_s

    def returned(self) -> dict[str, Any]:
        result = {"key": self._run.key, "attempt": self._run.attempt}
        self._world.witness.end(self.seen, "returned", result)
        return result

    async def die(self) -> None:
        """The process is gone in the middle of it."""
        self._world.crash(self._machine, "its handler killed it")
        await asyncio.sleep(1e12)


def _slept(machine: "Machine", seconds: float) -> None:
    """Blocks the thread of a ``def`` handler."""
    fibre = current_fibre()
    assert fibre is not None
    machine.world.after(seconds, fibre.answer, None, process=machine)
    fibre.wait()


def handlers_of(machine: "Machine") -> Handlers:  # noqa: C901 - one after the other
    """A worker's handlers; what they do to their process, they do to ``machine``."""
    handlers = Handlers()
    tempo = machine.world.plan.tempo

    async def quick(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            await asyncio.sleep(doing.seconds(0.05))
            return doing.returned()

    async def slow(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            await asyncio.sleep(doing.seconds(3.0))
            return doing.returned()

    async def flaky(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            await asyncio.sleep(doing.seconds(0.1))
            luck = doing.draw("luck")
            if luck < 0.3:
                raise ConnectionError("refused")
            if luck < 0.4:
                raise Retryable("busy", after=20.0 * tempo)
            if luck < 0.45:
                raise Permanent("no such card")
            return doing.returned()

    async def poison(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}):
            raise Permanent("it never works")

    async def killer(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            await asyncio.sleep(doing.seconds(0.1))
            if doing.draw("luck") < 0.3:
                await doing.die()
            return doing.returned()

    async def stall(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            if doing.draw("luck") < 0.3:
                lease_s = machine.world.plan.worker_settings.lease_s
                machine.world.pause(machine, lease_s * 2 * doing.draw("pause"))
            await asyncio.sleep(doing.seconds(0.1))
            return doing.returned()

    async def snoozer(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            await asyncio.sleep(doing.seconds(0.02))
            before = machine.world.witness.of(run.occurrence_id)
            snoozed = sum(e.outcome == "Snooze" for e in before)
            if doing.draw("luck") < 0.5 and snoozed < MOST_SNOOZES:
                raise Snooze(10.0 * tempo)
            if doing.draw("luck") > 0.75:
                raise ConnectionError("refused")
            return doing.returned()

    async def deaf(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            try:
                await asyncio.sleep(doing.seconds(1.0))
            except asyncio.CancelledError:
                await asyncio.sleep(doing.seconds(0.5))
            return doing.returned()

    async def patient(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            for _ in range(8):
                await asyncio.sleep(doing.seconds(0.2))
                if run.cancelled:
                    raise Permanent("it was told to stop")
            return doing.returned()

    def blocking(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            _slept(machine, doing.seconds(1.5))
            if doing.draw("luck") < 0.2:
                raise TimeoutError("the downstream is slow")
            return doing.returned()

    async def transactional(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            run.connection.append(run.occurrence_id)
            await asyncio.sleep(doing.seconds(0.3))
            if doing.draw("luck") < 0.2:
                raise ConnectionError("refused")
            return doing.returned()

    def transactional_def(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            run.connection.append(run.occurrence_id)
            _slept(machine, doing.seconds(0.3))
            return doing.returned()

    async def reconciled(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            if machine.world.witness.did(run.occurrence_id) and not machine.stood_s:
                machine.world.problem(f"{run.occurrence_id} ran again, though it had been done")
            await asyncio.sleep(doing.seconds(0.1))
            if doing.draw("luck") < 0.2:
                await doing.die()
            result = doing.returned()
            if doing.draw("then") < 0.3:
                await doing.die()
            return result

    async def beating(run: Run, n: int = 0) -> Any:
        with _Doing(machine, run, {"n": n}) as doing:
            for _ in range(3):
                await asyncio.sleep(doing.seconds(0.5))
                await run.heartbeat()
            return doing.returned()

    async def was_done(run: Run, n: int = 0) -> bool | None:
        done = machine.world.witness.did(run.occurrence_id)
        if done:
            machine.world.witness.reconciled.add(run.occurrence_id)
        return done

    for function in (
        quick, slow, flaky, poison, killer, stall, snoozer, deaf, patient, blocking, beating,
    ):  # fmt: skip
        handlers.handles(function.__name__)(function)
    handlers.handles("transactional", transactional=True)(transactional)
    handlers.handles("transactional_def", transactional=True)(transactional_def)
    handlers.handles("reconciled")(reconciled).reconcile(was_done)
    return handlers
