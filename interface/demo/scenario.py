"""What happens in the demo: which jobs there are, and what a person does to them meanwhile.

Every act goes through the public API, as a client's would. Times are fractions of the demo's
length, so that a short demo shows the same things.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from horolog.domain.retry import Retry
from horolog.domain.schedule import Cron, Every, Once
from horolog.interface.scheduler import Scheduler

POISON, CANCELLED = "poison", "cancelled"
"""The keys of the two jobs that the demo stands or falls with."""


@dataclass(frozen=True)
class Act:
    """Something that is done ``at`` seconds after the start."""

    at: float
    what: str
    do: Callable[[], object]


class Scenario:
    """The acts of a demo of ``seconds``, on one scheduler."""

    def __init__(self, scheduler: Scheduler, seconds: float) -> None:
        self._scheduler = scheduler
        self._seconds = seconds

    def acts(self) -> Iterator[Act]:
        """In the order of their times; ``do`` is to be called then, not before."""
        yield Act(0.0, "registering eight jobs", self._register)
        yield Act(0.2 * self._seconds, "triggering 'triggered'", self._trigger)
        yield Act(0.25 * self._seconds, "cancelling 'cancelled' before its time", self._cancel)
        yield Act(0.4 * self._seconds, "pausing 'paused'", self._pause)
        yield Act(self._seconds, "pausing what recurs", self._end)

    def _register(self) -> None:
        register = self._scheduler.register
        now = datetime.now(UTC)
        first = min(1.0, 0.1 * self._seconds)
        register(
            "echo",
            schedule=Once.in_seconds(1.5 * first, now),
            payload={"hello": "world"},
            key="one-off",
        )
        register("ping", schedule=Every(2), key="interval", labels={"kind": "interval"})
        register("ping", schedule=Cron("*/3 * * * * *", zone="UTC"), key="cron")
        register(
            "flaky",
            schedule=Once.in_seconds(first, now),
            payload={"failures": 2},
            retry=Retry(max_attempts=5, base=0.1 * self._seconds / 3, cap=1.0),
            key="flaky",
        )
        register(
            "poison",
            schedule=Once.in_seconds(first, now),
            retry=Retry(max_attempts=3, base=0.1 * self._seconds / 3, cap=1.0),
            owner="team-demo",
            key=POISON,
        )
        register("echo", schedule=Once.in_seconds(0.5 * self._seconds, now), key=CANCELLED)
        register("ping", schedule=Every(1.5), key="paused")
        register("echo", schedule=Every(86_400), payload={"by": "hand"}, key="triggered")

    def _trigger(self) -> None:
        job = self._scheduler.job("triggered")
        self._scheduler.trigger(job.id, request_id="demo", reason="somebody could not wait")

    def _cancel(self) -> None:
        job = self._scheduler.job(CANCELLED)
        self._scheduler.cancel(job.id, reason="no longer wanted")

    def _pause(self) -> None:
        self._scheduler.pause(self._scheduler.job("paused").id, reason="lunch")

    def _end(self) -> None:
        for key in ("interval", "cron", "triggered"):
            self._scheduler.pause(self._scheduler.job(key).id, reason="the demo ends")
