"""A client that registers without pause, and repeats what it got no answer to.

Every job has a key, so a repetition after a cut connection is the same job, whether or not the
first try was written.
"""

import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from tests.faults.system.system import HANDLERS, PATIENT, System, repeating

from horolog import JobSpec, Once
from horolog.domain.errors import StoreUnavailable

BATCH_S = 0.25
TIMES = 5
"""Fire times of a repeating job; one batch in four has one."""


class _Client:
    def __init__(self, system: System, per_second: float, seed: int) -> None:
        self._system = system
        self._per_batch = per_second * BATCH_S
        self._rng = random.Random(f"load {seed}")
        self._number = 0
        self.stop = Event()
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self._register(self._batch())
                self.stop.wait(max(0.0, BATCH_S - (time.monotonic() - began)))
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
        """Until there is an answer, also after the end: what was asked for is expected."""
        while True:
            try:
                for spec, job in zip(
                    batch, self._system.scheduler.register_many(batch), strict=True
                ):
                    self._system.expected[job.id] = spec.schedule.limit or 1
                return
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
