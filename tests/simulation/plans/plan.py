"""What is done to a world, and under which settings. It is data: told, changed and run again.

That is how a failing plan is made short. ``tempo`` stretches every time of the settings, the jobs
and the faults: with 1 a plan is some minutes of dense trouble, with 240 it is days, of which most
pass while nothing happens.
"""

from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from horolog.application.scanner.settings import ScannerSettings
from horolog.application.worker.settings import WorkerSettings
from horolog.infrastructure.simulated.ready_stream import Bounds

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
