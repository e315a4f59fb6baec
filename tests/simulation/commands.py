"""The user of a simulated world: commands over the network, in fibres, at the worst moments."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.keeping import Archive, WiredMonths
from tests.simulation.network import Blocking, BlockingLog, BlockingWire, Wire
from tests.simulation.rebuilding import WINDOW, WiredRebuilds
from tests.simulation.transactions import draining, give
from tests.simulation.virtual_time import Process

from horolog.application.commands import (
    backfilling,
    cancelling,
    changing,
    dead_letters,
    limiting_queues,
    registering,
    triggering,
)
from horolog.application.commands.backfill_request import Backfill
from horolog.application.commands.context import Context
from horolog.application.commands.job_spec import JobSpec
from horolog.application.inbox.commands import Commands
from horolog.application.inbox.giving import Giver, Giving
from horolog.application.rebuild import Difference, rebuild
from horolog.application.retention import prune
from horolog.domain.retry import Retry
from horolog.domain.schedule import Cron, Every, Once, Schedule
from horolog.infrastructure.simulated.orders import SimulatedOrders
from horolog.infrastructure.simulated.queue_limits import SimulatedQueueLimits

if TYPE_CHECKING:
    from tests.simulation.plans.plan import Action
    from tests.simulation.world import World

NAMESPACE = "simulated"


class Client(Process):
    """Each command has a connection of its own, as each client has."""

    def __init__(self, world: "World") -> None:
        super().__init__("client")
        self._world = world
        self._random = Random(f"client {world.plan.seed}")
        self._count = 0
        self.jobs: dict[int, UUID] = {}
        """Jobs by the number in their key."""

    def command(self, action: "Action") -> Callable[[], Any]:
        """What carries it out, to be called in a fibre."""
        self._count += 1
        wire = Wire(self._world, self, "log", f"command/{self._count}")
        link = BlockingWire(wire)
        tables = self._world.log.tables
        context = Context(
            log=BlockingLog(self._world.log, link),
            states=Blocking(self._world.states, link),  # pyright: ignore[reportArgumentType]
            clock=LogClock(self._world, link),
            entropy=self,
            namespace=NAMESPACE,
            partitions=len(tables.partitions),
            actor="user",
        )
        server = replace(
            context, log=self._world.log, states=self._world.states, clock=LogClock(self._world)
        )
        inbox = self._world.inbox
        if (fate := action.what.get("given")) is not None:
            giver = Giver(NAMESPACE, "user", self)
            given = partial(self._giving, Commands(giver), action)
            return lambda: give(inbox, server, link, given(), commit=fate == "commit")
        # What waits of a job is carried out before the next command on it.
        context = replace(context, settle=draining(inbox, link, context).settle)
        do = getattr(self, f"_{action.kind}")
        return lambda: do(context, link, action.what)

    def _giving(self, commands: Commands, action: "Action") -> Giving:
        what = action.what
        match action.kind:
            case "register":
                return commands.register(spec_of(what["spec"]))
            case "update":
                return commands.update(
                    self._job(what), payload={"n": what["n"]}, policies={}, expected_version=None,
                    reason=None,
                )  # fmt: skip
            case _:
                return commands.trigger(
                    self._job(what), at=None, request_id=what["request_id"], reason=None
                )

    def draw(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def _job(self, what: dict[str, Any]) -> UUID:
        return self.jobs.get(what["job"], UUID(int=what["job"] + 1))

    def _register(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        spec = spec_of(what["spec"])
        state = registering.register(context, spec)
        self.jobs[int(what["spec"]["key"].partition("-")[2])] = state.id
        return state

    def _register_again(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        """The same key once more, by a client that lost its answer."""
        specs = [
            action.what["spec"]
            for action in self._world.plan.actions
            if action.kind == "register" and action.what["spec"]["key"] == f"job-{what['job']}"
        ]
        return self._register(context, link, {"spec": specs[0]}) if specs else None

    def _pause(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        return changing.pause(context, self._job(what))

    def _resume(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        return changing.resume(context, self._job(what), catch_up=what.get("catch_up", False))

    def _cancel(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        return changing.cancel(context, self._job(what))

    def _reschedule(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        return changing.reschedule(context, self._job(what), schedule_of(what["schedule"]))

    def _update(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        payload = {"n": what["n"]}
        return changing.update(context, self._job(what), payload=payload, policies={})

    def _trigger(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        at = None
        if what["in_s"] is not None:
            at = context.clock.now() + timedelta(seconds=what["in_s"])
        orders = Blocking(SimulatedOrders(self._world.log), link)
        return triggering.trigger(
            context,
            orders,  # pyright: ignore[reportArgumentType]
            self._job(what),
            at=at,
            request_id=what["request_id"],
        )

    def _replay(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        letters = list[UUID](sorted(self._world.log.tables.dead_letters))
        if letters:
            dead_letters.replay(context, letters[int(what["job"]) % len(letters)])

    def _discard(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        letters = list[UUID](sorted(self._world.log.tables.dead_letters))
        if letters:
            dead_letters.discard(context, letters[int(what["job"]) % len(letters)])

    def _cancel_run(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        rows = self._world.log.tables.next_runs.values()
        runs = list[UUID](sorted(row.run.id for row in rows if row.run.kind != "job"))
        if runs:
            cancelling.cancel_occurrence(context, runs[int(what["job"]) % len(runs)])

    def _backfill(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        now = context.clock.now()
        asked = Backfill(start=now - timedelta(seconds=what["back_s"]), end=now)
        orders = Blocking(SimulatedOrders(self._world.log), link)
        return backfilling.backfill(
            context,
            orders,  # pyright: ignore[reportArgumentType]
            self._job(what),
            asked,
        )

    def _prune(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        """What is that old. The program takes a day or more, so it is told of tomorrow."""
        keeping = self._world.keeping
        months: Any = WiredMonths(keeping, link)
        return prune(
            months,
            older_than_days=1,
            now=context.clock.now() + timedelta(days=1) - timedelta(seconds=what["age_s"]),
            drawn=lambda: UUID(bytes=self.draw(16)),
            actor="user",
            archive=Archive(keeping),
        )

    def _rebuild(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        """Nothing may differ, for nobody has broken anything."""
        rebuilds: Any = WiredRebuilds(self._world.keeping, link)

        def found(difference: Difference) -> None:
            self._world.problem(f"a rebuild found {difference}")

        return rebuild(rebuilds, actor="user", window=WINDOW, found=found)

    def _limit_queue(self, context: Context, link: BlockingWire, what: dict[str, Any]) -> Any:
        limits = Blocking(SimulatedQueueLimits(self._world.log), link)
        limiting_queues.limit_queue(
            limits,  # pyright: ignore[reportArgumentType]
            what["queue"],
            limit=what["limit"],
            rate=what["rate"],
            actor="user",
        )


class LogClock:
    """The log's clock, read over the network where there is one between."""

    def __init__(self, world: "World", link: BlockingWire | None = None) -> None:
        self._world = world
        self._link = link

    def now(self) -> datetime:
        return self._world.now() if self._link is None else self._link(self._world.now)


def spec_of(spec: dict[str, Any]) -> JobSpec:
    """A job as the plan states it."""
    policies = dict(spec["policies"])
    policies["retry"] = Retry(**policies["retry"])
    return JobSpec(
        spec["name"],
        schedule=schedule_of(spec["schedule"]),
        payload={"n": 0},
        key=spec["key"],
        owner="simulated",
        **policies,
    )


def schedule_of(stated: dict[str, Any]) -> Schedule:
    match stated["kind"]:
        case "once":
            return Once(datetime.fromisoformat(stated["at"]))
        case "every":
            return Every(stated["seconds"], anchor=datetime.fromisoformat(stated["anchor"]))
        case _:
            return Cron(f"{stated['minutes']} {stated['hours']} * * *", stated["zone"])
