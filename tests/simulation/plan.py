"""What a seed decides before anything happens: the settings, the jobs, the faults, the commands.

A plan is data. It is drawn from its seed alone, and it can be told, changed and run again: that is
how a failing one is made short. ``tempo`` stretches every time of the settings, the jobs and the
faults: with 1 a plan is some minutes of dense trouble, with 240 it is days, of which most pass
while nothing happens.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any

from tests.simulation.handlers import NAMES

from horolog.application.scanner.settings import ScannerSettings
from horolog.application.worker.settings import WorkerSettings
from horolog.infrastructure.simulated.ready_stream import Bounds

TEMPOS = (1.0, 240.0, 8.0, 1.0, 240.0, 60.0, 240.0)
UNITS_S = 900.0
"""How long a plan is, in seconds of tempo 1, before everything is healed."""

STARTS = (
    datetime(2027, 3, 13, 20, tzinfo=UTC),  # the night before New York's clocks go forward
    datetime(2027, 11, 6, 20, tzinfo=UTC),  # and back
    datetime(2027, 3, 27, 20, tzinfo=UTC),  # London's and Berlin's
    datetime(2027, 10, 30, 20, tzinfo=UTC),
    datetime(2028, 2, 28, 20, tzinfo=UTC),
    datetime(2027, 6, 1, 8, tzinfo=UTC),
)
FOCUSES = (
    ("nothing", 0.08),
    ("failover", 0.2),
    ("old leaders", 0.28),
    ("old workers", 0.36),
    ("the queue", 0.45),
    ("changes", 0.52),
)
"""How many of the plans have trouble with one thing alone; the others have all of it."""

ZONES = ("America/New_York", "Europe/London", "Europe/Berlin", "Australia/Lord_Howe", "UTC")

COMMANDS = frozenset(
    {
        "register", "register_again", "pause", "resume", "cancel", "reschedule", "update",
        "trigger", "replay", "discard", "cancel_run", "backfill", "limit_queue", "prune",
        "rebuild",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Action:
    """Something that is done to the world ``at`` so many seconds from the start.

    ``target`` names processes by the beginning of their names; ``seconds`` is how long a trouble
    lasts; ``amount`` is how bad it is; ``what`` are the arguments of a command.
    """

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    amount: float = 1.0
    what: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        said = f"{self.at:12.3f} s  {self.kind}"
        if self.target:
            said += f" {self.target}"
        if self.seconds:
            said += f" for {self.seconds:.3f} s"
        if self.amount != 1.0:
            said += f" ({self.amount:g})"
        if self.what:
            said += f" {self.what}"
        return said


@dataclass(frozen=True)
class Plan:
    """One run of the simulation. ``length_s`` is when all troubles end, ``focus`` what they are
    about."""

    seed: int
    tempo: float
    start: datetime
    length_s: float
    scanners: int
    workers: int
    partitions: int
    bounds: dict[str, Any]
    actions: tuple[Action, ...]
    focus: str = "everything"
    followers: int = 0

    @cached_property
    def scanner_settings(self) -> ScannerSettings:
        k = self.tempo
        return ScannerSettings(
            lease_s=10.0 * k,
            settle_s=0.5 * k,
            horizon_s=60.0 * k,
            sweep_s=2.0 * k,
            look_interval_s=2.0 * k,
            claim_window_s=30.0 * k,
            max_window_s=120.0 * k,
            mark_interval_s=2.0 * k,
            watch_interval_s=20.0 * k,
            alert_interval_s=20.0 * k,
            inbox_interval_s=20.0 * k,
            claim_batch=8,
            read_batch=24,
            flood_runs=2,
            max_unpublished=12,
            ahead_first=20,
            max_backoff_s=2.0 * k,
            publish_timeout_s=5.0 * k,
            drain_s=2.0 * k,
        )

    @cached_property
    def worker_settings(self) -> WorkerSettings:
        k = self.tempo
        return WorkerSettings(
            concurrency=6,
            threads=2,
            transactions=2,
            lease_s=30.0 * k,
            heartbeat_s=8.0 * k,
            ack_wait_s=24.0 * k,
            give_back_delay_s=4.0 * k,
            blocked_loop_s=min(3600.0, 4.0 * k),
            unknown_handler_wait_s=60.0 * k,
            unknown_handler_delay_s=5.0 * k,
            drain_grace_s=10.0 * k,
            cancel_grace_s=5.0,
            retry_append_s=min(60.0, 0.25 * k),
        )

    @cached_property
    def stream_bounds(self) -> Bounds:
        return Bounds(
            duplicate_window_s=20.0 * self.tempo,
            ack_wait_s=24.0 * self.tempo,
            **self.bounds,
        )

    @property
    def news_horizon_s(self) -> float:
        return 60.0 * self.tempo

    @property
    def linger_s(self) -> float:
        return 5.0 * self.tempo

    def without(self, numbers: set[int]) -> "Plan":
        """The same with some of its actions left out."""
        kept = tuple(a for number, a in enumerate(self.actions) if number not in numbers)
        return replace(self, actions=kept)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "start": self.start.isoformat()}

    def told(self) -> str:
        """The plan as a story."""
        head = (
            f"seed {self.seed}: {self.length_s / 3600:.1f} h at tempo {self.tempo:g} from"
            f" {self.start.isoformat()}, {self.scanners} scanners, {self.workers} workers,"
            f" {self.partitions} partitions, trouble with {self.focus}"
        )
        return "\n".join([head, *(str(action) for action in self.actions)])


def plan_of(seed: int) -> Plan:
    """The plan of a seed."""
    return _Drawing(seed).plan()


class _Drawing:
    """Draws one plan. Times are drawn in units: seconds at tempo 1."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(f"plan {seed}")
        self._seed = seed
        self._tempo = TEMPOS[seed % len(TEMPOS)]
        self._start = random.choice(STARTS)
        self._units = UNITS_S * random.uniform(0.5, 1.5)
        self._scanners = random.choice((1, 2, 2, 3))
        self._workers = random.choice((1, 2, 2, 3))
        self._partitions = random.choice((1, 3, 8))
        # Some plans are calm, and some have trouble with one thing alone: there is more to be said
        # of what must not happen in them.
        draw = random.random()
        self._focus = next((focus for focus, upto in FOCUSES if draw < upto), "everything")
        if self._focus in ("failover", "old leaders"):
            self._partitions, self._scanners = random.choice((1, 2)), 2
        self._moments: list[float] = []
        self._jobs = 0
        self._actions: list[Action] = []

    def plan(self) -> Plan:
        random = self._random
        many = self._focus in ("failover", "old leaders")
        for _ in range(random.randint(4, 7) if many else random.randint(2, 6)):
            self._register(random.uniform(0.0, 20.0))
        for _ in range(random.randint(0, 3)):
            self._register(self._moment())
        kinds = self._kinds()
        for _ in range(random.randint(3, 16) if kinds else 0):
            random.choice(kinds)()
        for _ in range(random.randint(0, 12)):
            self._command()
        self._give()
        self._ask_again()
        self._prune()
        self._rebuild()
        followers = self._follow()
        bounds: dict[str, Any] = {}
        if random.random() < 0.2:
            bounds["max_messages"] = random.randint(2, 8)
        if random.random() < 0.2:
            bounds["max_ack_pending"] = random.randint(2, 8)
        return Plan(
            self._seed,
            self._tempo,
            self._start,
            self._units * self._tempo,
            self._scanners,
            self._workers,
            self._partitions,
            bounds,
            tuple(sorted(self._actions, key=lambda action: action.at)),
            self._focus,
            followers,
        )

    def _do(self, at: float, kind: str, target: str = "", **values: Any) -> None:
        if "seconds" in values:
            values["seconds"] *= self._tempo
        self._actions.append(Action(at * self._tempo, kind, target, **values))

    def _moment(self) -> float:
        """A time of the plan, in units: more often than not one at which something is due."""
        random = self._random
        if self._moments and random.random() < 0.7:
            near = random.choice(self._moments)
            offset = random.choice((0.003, 0.05, 1.0)) * random.uniform(-1, 3) / self._tempo
            return min(max(0.0, near + offset), self._units)
        return random.uniform(0.0, self._units)

    def _someone(self) -> str:
        random = self._random
        role, count = random.choice(
            (("scanner", self._scanners), ("worker", self._workers), ("scanner", self._scanners))
        )
        return f"{role}-{random.randrange(count)}"

    # Jobs.

    def _register(self, at: float) -> None:
        spec = self._spec(at)
        self._do(at, "register", what={"spec": spec})
        self._jobs += 1

    def _spec(self, at: float) -> dict[str, Any]:
        random, tempo = self._random, self._tempo
        policies: dict[str, Any] = {
            "overlap": "allow"
            if self._focus == "old leaders"
            else random.choice(
                ("allow", "allow", "skip", "buffer_one", "buffer_all", "cancel_other")
            ),
            "catch_up": random.choice(("latest", "latest", "earliest", "all", "all", "skip")),
            "catch_up_window": random.choice((60.0, 600.0, 86_400.0)) * max(1.0, tempo),
            "retry": {
                "max_attempts": random.randint(1, 5),
                "base": random.choice((0.5, 2.0, 10.0)) * tempo,
                "cap": 40.0 * tempo,
                "jitter": random.choice((0.0, 0.2)),
            },
            "queue": random.choice(("default", "default", "mail")),
            "priority": random.choice((0, 0, 5)),
            "on_unknown": random.choice(("retry", "retry", "dead_letter")),
        }
        if policies["catch_up"] == "all":
            policies["catch_up_rate"] = random.choice((0.2, 2.0, 50.0))
        if random.random() < 0.2:
            policies["timeout"] = random.choice((5.0, 40.0)) * tempo
        if random.random() < 0.25:
            policies["concurrency_limit"] = random.randint(1, 2)
            if random.random() < 0.6:
                policies["concurrency_key"] = random.choice(("a", "b"))
                policies["concurrency_limit"] = {"a": 1, "b": 2}[policies["concurrency_key"]]
        if random.random() < 0.1:
            policies["rate_limit"] = random.choice((0.05, 1.0))
        policies["catch_up_window"] = min(policies["catch_up_window"], 300 * 86_400.0)
        # Drawn apart: who watches changes nothing of what there is to see.
        watching = Random(f"deadlines {self._seed} {self._jobs}")
        for deadline in ("start_within", "finish_within"):
            if watching.random() < 0.3:
                policies[deadline] = watching.choice((1.0, 10.0, 60.0)) * tempo
        if watching.random() < 0.25:
            policies["expect_success_by"] = watching.choice((20.0, 90.0, 400.0)) * tempo
        return {
            "name": random.choice(NAMES) if random.random() < 0.97 else "nobodys",
            "key": f"job-{self._jobs}",
            "schedule": self._schedule(at),
            "policies": policies,
        }

    def _schedule(self, at: float) -> dict[str, Any]:
        random, tempo = self._random, self._tempo
        kind = random.random()
        if kind < 0.15:
            due = at + random.choice((0.5, 5.0, 60.0, 300.0)) * random.random() / 1.0 + 2.0 / tempo
            self._moments.append(due)
            moment = self._start + timedelta(seconds=due * tempo)
            return {"kind": "once", "at": moment.isoformat()}
        if kind < 0.35 and tempo >= 8.0:
            return self._cron()
        every = random.choice((15.0, 30.0, 60.0, 120.0)) * (1.0 if tempo < 60 else 2.0)
        phase = random.choice((0.0, 0.0, 7.0))
        self._moments += [
            phase + n * every for n in range(int(self._units / every)) if phase + n * every > at
        ][:40]
        anchor = self._start + timedelta(seconds=phase * tempo)
        return {"kind": "every", "seconds": every * tempo, "anchor": anchor.isoformat()}

    def _cron(self) -> dict[str, Any]:
        random = self._random
        zone = random.choice(ZONES)
        if self._tempo < 60.0:
            step = random.choice((5, 10, 20))
            return {"kind": "cron", "minutes": f"*/{step}", "hours": "*", "zone": zone}
        minutes = ",".join(str(m) for m in sorted(random.sample((0, 15, 30, 59), 2)))
        hours = random.choice(("*/2", "1,2,3", "2", "0,1,2,3,12", "*"))
        return {"kind": "cron", "minutes": minutes, "hours": hours, "zone": zone}

    # Troubles.

    def _kinds(self) -> list[Callable[[], None]]:
        match self._focus:
            case "nothing":
                return []
            case "failover":
                return [self._crash_leader, self._crash_leader, self._queue_outage]
            case "old leaders":
                # So slow that a claim takes a while, and its successor's takeover too.
                seconds = self._units
                self._do(0.0, "slow_log", "scanner", seconds=seconds, amount=0.3 * self._tempo)
                return [self._freeze_leader]
            case "old workers":
                seconds = self._units
                self._do(0.0, "slow_log", "worker", seconds=seconds, amount=0.3 * self._tempo)
                return [self._freeze_worker]
            case "the queue":
                return [self._queue_harm, self._loss]
            case "changes":
                # Claims wait for a while before anybody begins them.
                seconds = self._units
                self._do(0.0, "slow_log", "worker", seconds=seconds, amount=0.5 * self._tempo)
                return [self._change]
            case _:
                return [
                    self._crash, self._crash, self._freeze, self._freeze, self._stop, self._loss,
                    self._loss, self._loss, self._outage, self._outage, self._slowness,
                    self._queue_harm, self._queue_harm, self._full, self._clock, self._all_away,
                ]  # fmt: skip

    def _change(self) -> None:
        """Of a job that has just been claimed, and has not begun."""
        random = self._random
        at = self._moment() if not self._moments else random.choice(self._moments)
        kind = random.choice(("update", "update", "update", "cancel", "pause", "reschedule"))
        what: dict[str, Any] = {"job": random.randrange(max(1, self._jobs))}
        if kind == "update":
            what["n"] = random.randint(1, 1_000)
        if kind == "reschedule":
            what["schedule"] = self._schedule(at)
        if kind == "pause":
            back = at + random.uniform(1.0, 60.0)
            self._do(back, "resume", what={**what, "catch_up": False})
        self._do(at + random.uniform(0.0, 1.5), kind, what=what)

    def _crash_leader(self) -> None:
        after = self._random.choice((0.0, 0.0, 30.0)) * self._random.random()
        target = f"scanner-{self._random.randrange(self._scanners)}"
        amount = float(self._random.randint(1, 40))
        self._do(self._moment(), "crash", target, seconds=after, amount=amount)

    def _queue_outage(self) -> None:
        """About a moment at which something is due, and with it the end of a scanner."""
        random = self._random
        due = random.choice(self._moments) if self._moments else self._moment()
        before, after = random.uniform(0.0, 3.0), random.uniform(3.0, 30.0)
        self._do(max(0.0, due - before), "queue_away", seconds=before + after)
        target = f"scanner-{random.randrange(self._scanners)}"
        self._do(due + random.uniform(0.0, after), "crash", target)

    def _freeze_leader(self) -> None:
        """In the middle of a claim, until about the time when its lease ends."""
        random = self._random
        at = self._moment() if not self._moments else random.choice(self._moments)
        target = f"scanner-{random.randrange(self._scanners)}"
        seconds = random.uniform(6.0, 13.0)
        self._do(at + random.uniform(0.0, 0.8), "freeze", target, seconds=seconds)

    def _freeze_worker(self) -> None:
        """In the middle of beginning a run, until after its lease."""
        random = self._random
        at = self._moment() if not self._moments else random.choice(self._moments)
        target = f"worker-{random.randrange(self._workers)}"
        seconds = random.uniform(20.0, 60.0)
        self._do(at + random.uniform(0.0, 1.5), "freeze", target, seconds=seconds)

    def _crash(self) -> None:
        random = self._random
        after = random.choice((0.0, 0.5, 5.0, 40.0)) * random.random()
        # Not at once, but when it has done so much more: when it is in the middle of something.
        self._do(
            self._moment(),
            "crash",
            self._someone(),
            seconds=after,
            amount=float(random.choice((1, random.randint(1, 60)))),
        )

    def _freeze(self) -> None:
        random = self._random
        at = self._moment()
        seconds = random.choice((1.0, 12.0, 45.0)) * random.uniform(0.3, 1.5)
        later = [moment for moment in self._moments if 11.0 < moment - at < 60.0]
        if later and random.random() < 0.6:
            # It goes on just when something is due again, long after its lease has ended.
            seconds = random.choice(later) - at + random.uniform(-0.006, 0.004) / self._tempo
        self._do(
            at,
            random.choice(("freeze", "suspend")),
            self._someone(),
            seconds=seconds,
            amount=float(random.choice((1, random.randint(1, 60)))),
        )

    def _stop(self) -> None:
        after = self._random.choice((0.0, 5.0, 30.0)) * self._random.random()
        self._do(self._moment(), "stop", self._someone(), seconds=after)

    def _loss(self) -> None:
        random = self._random
        kind = random.choice(
            (
                "log_answers_lost", "log_answers_lost", "log_requests_lost", "news_lost",
                "news_doubled", "queue_answers_lost", "words_lost", "words_doubled",
                "messages_lost", "confirmations_lost",
            )
        )  # fmt: skip
        target = random.choice(("", "", self._someone()))
        seconds = random.choice((1.0, 10.0, 60.0)) * random.uniform(0.5, 1.5)
        self._do(
            self._moment(), kind, target, seconds=seconds, amount=random.choice((0.2, 0.6, 1.0))
        )

    def _outage(self) -> None:
        random = self._random
        kind = random.choice(("log_away", "queue_away", "log_cut", "queue_cut"))
        target = self._someone() if kind.endswith("cut") else ""
        seconds = random.choice((0.5, 8.0, 30.0, 90.0)) * random.uniform(0.5, 1.5)
        self._do(self._moment(), kind, target, seconds=seconds)

    def _slowness(self) -> None:
        random = self._random
        self._do(
            self._moment(),
            random.choice(("slow_log", "slow_queue")),
            random.choice(("", self._someone())),
            seconds=random.choice((10.0, 60.0)),
            amount=random.choice((0.3, 3.0)) * random.choice((1.0, self._tempo)),
        )

    def _queue_harm(self) -> None:
        random = self._random
        kind = random.choice(
            ("delete_stream", "purge_stream", "lose_end", "delete_consumer", "deliver_again")
        )
        target = random.choice(("default", "mail")) if kind == "delete_consumer" else ""
        self._do(self._moment(), kind, target, amount=float(random.randint(1, 5)))

    def _full(self) -> None:
        seconds = self._random.choice((10.0, 60.0))
        self._do(self._moment(), "full", seconds=seconds, amount=float(self._random.randint(0, 3)))

    def _clock(self) -> None:
        random = self._random
        if random.random() < 0.5:
            self._do(self._moment(), "log_clock_step", amount=random.choice((0.4, 5.0, 40.0)))
        else:
            amount = random.choice((-3600.0, -30.0, 30.0, 3600.0))
            self._do(self._moment(), "wall_clock_step", self._someone(), amount=amount)

    def _all_away(self) -> None:
        random = self._random
        role = random.choice(("scanner", "worker"))
        seconds = random.choice((5.0, 40.0, 200.0)) * random.uniform(0.5, 1.5)
        self._do(self._moment(), "all_away", role, seconds=seconds)

    # Commands.

    def _give(self) -> None:
        """Some plans have a client who gives commands in transactions of its own, and takes some of
        them back."""
        self._random, drawn = Random(f"given {self._seed}"), self._random
        random = self._random
        for number in range(random.choice((0, 0, 1, 3, 6))):
            at, job = self._moment(), random.randrange(max(1, self._jobs))
            what: dict[str, Any] = {"given": random.choice(("commit", "commit", "rollback"))}
            match random.choice(("register", "trigger", "trigger", "update")):
                case "register":
                    self._do(at, "register", what={**what, "spec": self._spec(at)})
                    self._jobs += 1
                case "update":
                    self._do(at, "update", what={**what, "job": job, "n": random.randint(1, 1_000)})
                case _:
                    request = f"given-{number}"
                    self._do(at, "trigger", what={**what, "job": job, "request_id": request})
        self._random = drawn

    def _prune(self) -> None:
        """Some plans have an operator who prunes what is old enough; drawn apart."""
        random = Random(f"prunings {self._seed}")
        if self._focus == "old leaders":
            return
        for _ in range(random.choice((0, 0, 1, 3))):
            at = random.uniform(150.0, max(160.0, self._units))
            self._do(at, "prune", what={"age_s": random.choice((30.0, 120.0)) * self._tempo})

    def _rebuild(self) -> None:
        """Some have one who builds the read models anew meanwhile; drawn apart."""
        random = Random(f"rebuilds {self._seed}")
        for _ in range(random.choice((0, 0, 1, 2))):
            at = self._units * random.uniform(0.1, 1.0)
            if self._moments and random.random() < 0.7:
                at = random.choice(self._moments) - random.uniform(0.0, 0.15) / self._tempo
            self._do(min(max(0.0, at), self._units), "rebuild")

    def _follow(self) -> int:
        """How many processes run a user's projection, and what befalls them; drawn apart."""
        random = Random(f"followers {self._seed}")
        followers = random.choice((0, 0, 1, 2))
        if followers and self._focus == "everything":
            for _ in range(random.randint(0, 4)):
                target = f"follower-{random.randrange(followers)}"
                at, seconds = random.uniform(0.0, self._units), random.choice((0.5, 20.0, 90.0))
                kind = random.choice(("crash", "crash", "freeze", "stop"))
                steps = float(random.randint(1, 30))
                self._do(at, kind, target, seconds=seconds, amount=steps)
        return followers

    def _ask_again(self) -> None:
        """By a user who was not told, or was told too late: the same request of the same job. Drawn
        apart, as what a client gives."""
        random = Random(f"again {self._seed}")
        for action in list(self._actions):
            request = action.what.get("request_id")
            if action.kind != "trigger" or request is None or "given" in action.what:
                continue
            if random.random() < 0.7:
                at = action.at / self._tempo + random.choice((0.0, 0.2, 30.0)) * random.random()
                what = {**action.what, "in_s": random.choice((None, action.what["in_s"]))}
                self._do(min(at, self._units), "trigger", what=what)

    def _command(self) -> None:
        random = self._random
        number = random.randrange(max(1, self._jobs))
        kind = random.choice(
            (
                "pause", "resume", "resume", "cancel", "reschedule", "update", "update", "trigger",
                "trigger", "replay", "replay", "discard", "cancel_run", "cancel_run", "backfill",
                "limit_queue", "register_again",
            )
        )  # fmt: skip
        at = self._moment()
        what: dict[str, Any] = {"job": number}
        match kind:
            case "pause":
                back = at + random.choice((0.01, 20.0, 120.0)) * random.random()
                self._do(back, "resume", what={"job": number, "catch_up": random.random() < 0.3})
            case "resume":
                what["catch_up"] = random.random() < 0.3
            case "reschedule":
                what["schedule"] = self._schedule(at)
            case "update":
                what["n"] = random.randint(1, 1_000)
            case "trigger":
                what["request_id"] = random.choice((None, f"request-{random.randint(0, 2)}"))
                what["in_s"] = random.choice((None, 5.0 * self._tempo))
            case "backfill":
                what["back_s"] = random.choice((60.0, 300.0)) * self._tempo
            case "limit_queue":
                what = {
                    "queue": random.choice(("default", "mail")),
                    "limit": random.choice((None, 1, 3)),
                    "rate": random.choice((None, None, 1.0)),
                }
            case _:
                pass
        self._do(at, kind, what=what)
        if kind == "limit_queue":
            later = at + random.uniform(5.0, 200.0)
            self._do(later, "limit_queue", what={**what, "limit": None, "rate": None})
