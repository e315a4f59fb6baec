"""A client that registers, triggers and changes jobs without pause, and repeats what it got no
answer to.

Every job has a key and every trigger a request id, so a repetition after a cut connection is the
same job and the same run, whether or not the first try was written. One job at a time is restless:
paused, resumed, rescheduled, changed, and in the end cancelled. How often it runs nobody can
foresee, but `verify` holds every one of its fire times to account.
"""

import random
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TypeVar
from uuid import UUID

from tests.faults.system.system import HANDLERS, PATIENT, System, repeating

from horolog import Every, JobSpec, NotAllowed, Once, Retry
from horolog.domain.errors import StoreUnavailable

T = TypeVar("T")

BATCH_S = 0.25
TIMES = 5
"""Fire times of a repeating job; one batch in four has one."""


class _Client:
    def __init__(self, system: System, per_second: float, seed: int) -> None:
        self._system = system
        self._scheduler = system.scheduler
        self._per_batch = per_second * BATCH_S
        self._rng = random.Random(f"load {seed}")
        self._number = 0
        self._restless: UUID | None = None
        self.stop = Event()
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self._register(self._batch())
                self._trigger()
                self._change()
                self.stop.wait(max(0.0, BATCH_S - (time.monotonic() - began)))
            self._cancel()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the thread
            self.failed = error

    def _batch(self) -> list[JobSpec]:
        """One-offs due within the next seconds, some of which take a while; now and then a job
        that repeats."""
        rng, now = self._rng, datetime.now(UTC)
        size = self._per_batch
        batch: list[JobSpec] = []
        if rng.random() < 0.25:
            batch.append(repeating(rng.choice(HANDLERS), 0.4, TIMES, key=self._key()))
            size -= TIMES
        for _ in range(max(1, round(size))):
            seconds = rng.choice([0.0, 0.0, 0.0, 0.02, 0.2])
            due = Once(now + timedelta(seconds=rng.uniform(-1, 2)))
            batch.append(
                JobSpec(
                    rng.choice(HANDLERS),
                    schedule=due,
                    key=self._key(),
                    retry=PATIENT,
                    payload={"seconds": seconds} if seconds else None,
                )
            )
        return batch

    def _key(self) -> str:
        self._number += 1
        return f"job-{self._number}"

    def _register(self, batch: list[JobSpec]) -> None:
        jobs = self._answered(lambda: list(self._scheduler.register_many(batch)))
        for spec, job in zip(batch, jobs, strict=True):
            self._system.expected[job.id] = spec.schedule.limit or 1

    def _trigger(self) -> None:
        """An extra run of a job, whether or not it has ended, ordered twice."""
        job = self._rng.choice(list(self._system.expected))
        request = f"request-{self._number}"
        for _ in range(2):
            self._answered(lambda: self._scheduler.trigger(job, request_id=request))
        self._system.expected[job] += 1

    def _change(self) -> None:
        """Something happens to the job that is restless at the time."""
        job, scheduler = self._restless, self._scheduler
        if job is None:
            self._restless = self._answered(self._make_restless)
            self._system.restless.add(self._restless)
            return
        act = self._rng.choice(["pause", "resume", "resume", "reschedule", "update", "cancel", ""])
        try:
            match act:
                case "pause":
                    self._answered(lambda: scheduler.pause(job))
                case "resume":
                    self._answered(lambda: scheduler.resume(job))
                case "reschedule":
                    schedule = Every(self._rng.choice([0.1, 0.2, 0.5]))
                    self._answered(lambda: scheduler.reschedule(job, schedule))
                case "update":
                    retry = Retry(max_attempts=self._rng.randint(500, 1000), base=0.05, cap=0.5)
                    self._answered(lambda: scheduler.update(job, retry=retry))
                case "cancel" if self._rng.random() < 0.3:
                    self._cancel()
                case _:
                    pass
        except NotAllowed:
            pass  # a repetition of what was done already

    def _make_restless(self) -> UUID:
        rng = self._rng
        spec = JobSpec(
            rng.choice(HANDLERS),
            schedule=Every(0.2),
            key=f"restless-{len(self._system.restless)}",
            retry=PATIENT,
            payload={"seconds": 0.1},
            catch_up=rng.choice(["all", "latest", "earliest", "skip"]),
            overlap=rng.choice(["allow", "skip", "buffer_one", "buffer_all"]),
        )
        (job,) = self._scheduler.register_many([spec])
        return job.id

    def _cancel(self) -> None:
        job, self._restless = self._restless, None
        if job is not None:
            self._answered(lambda: self._scheduler.cancel(job))

    def _answered(self, ask: Callable[[], T]) -> T:
        """What came of it, also after the end: what was asked for is expected."""
        while True:
            try:
                return ask()
            except StoreUnavailable:
                time.sleep(0.1)


@contextmanager
def under_load(system: System, per_second: float, seed: int) -> Generator[None]:
    """While the block lasts, about so many occurrences become due each second."""
    client = _Client(system, per_second, seed)
    thread = Thread(target=client.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        client.stop.set()
        thread.join(30)
    assert not thread.is_alive()
    if client.failed is not None:
        raise client.failed
