"""Limits as a client states them, on the log and in simulated time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from horolog import InvalidPolicy, Once, Run, Worker
from horolog.testing import SimulatedScheduler

if TYPE_CHECKING:
    from horolog import Scheduler

START = datetime(2027, 1, 1, tzinfo=UTC)


def test_a_queues_limits_are_set_changed_listed_and_taken_away(scheduler: Scheduler) -> None:
    assert scheduler.limited_queues() == []
    scheduler.limit_queue("mail", limit=20, rate=5)
    scheduler.limit_queue("bills", rate=0.5)
    mail, bills = sorted(scheduler.limited_queues(), key=lambda one: -(one.limit or 0))
    assert (mail.queue, mail.limit, mail.rate, mail.taken, mail.waiting) == ("mail", 20, 5, 0, 0)
    assert (bills.queue, bills.limit, bills.rate) == ("bills", None, 0.5)
    scheduler.limit_queue("mail", limit=3)
    scheduler.limit_queue("bills")
    (mail,) = scheduler.limited_queues()
    assert (mail.limit, mail.rate) == (3, None)


@pytest.mark.parametrize(
    ("queue", "values", "words"),
    [
        ("no spaces", {"limit": 1}, "queue='no spaces'"),
        ("q", {"limit": 0}, "limit=0"),
        ("q", {"limit": 10_001}, "at most 10000"),
        ("q", {"rate": 0.0}, r"rate=0\.0"),
        ("q", {"rate": float("inf")}, "rate=inf"),
    ],
)
def test_what_cannot_be_a_limit_is_refused(
    scheduler: Scheduler, queue: str, values: dict[str, float], words: str
) -> None:
    with pytest.raises(InvalidPolicy, match=words):
        scheduler.limit_queue(queue, **values)  # pyright: ignore[reportArgumentType]
    assert scheduler.limited_queues() == []


def test_a_jobs_limits_are_kept_and_changed(scheduler: Scheduler) -> None:
    job = scheduler.register(
        "a", schedule=Once(START), concurrency_key="k", concurrency_limit=2, rate_limit=1.5
    )
    assert (job.concurrency_limit, job.rate_limit) == (2, 1.5)
    assert scheduler.update(job.id, rate_limit=None).rate_limit is None
    with pytest.raises(InvalidPolicy, match="rate_limit=0"):
        scheduler.update(job.id, rate_limit=0)


class Account:
    """When each run began in simulated time."""

    def __init__(self) -> None:
        self.worker = Worker()
        self.began: list[float] = []

        @self.worker.handles("work")
        def _(run: Run) -> None:
            self.began.append((self.scheduler.now - START).total_seconds())

        self.scheduler = SimulatedScheduler(self.worker, start=START, takes={"work": 10})


def test_in_simulated_time_a_key_runs_so_many_at_once() -> None:
    account = Account()
    with account.scheduler as scheduler:
        for _ in range(5):
            scheduler.register(
                "work", schedule=Once(START), concurrency_key="k", concurrency_limit=2
            )
        scheduler.advance(minutes=5)
        assert account.began == [0, 0, 10, 10, 20]
        assert scheduler.verify().ok


def test_in_simulated_time_a_rate_is_kept() -> None:
    account = Account()
    with account.scheduler as scheduler:
        for _ in range(4):
            scheduler.register("work", schedule=Once(START), concurrency_key="k", rate_limit=0.1)
        scheduler.advance(minutes=5)
        assert account.began == [0, 10, 20, 30]


def test_in_simulated_time_a_queue_is_limited_until_that_is_taken_away() -> None:
    account = Account()
    with account.scheduler as scheduler:
        scheduler.limit_queue("default", limit=1)
        for number in range(4):
            scheduler.register("work", schedule=Once(START + timedelta(seconds=number)))
        scheduler.advance(seconds=15)
        (limited,) = scheduler.limited_queues()
        assert (limited.taken, limited.waiting) == (1, 2)
        scheduler.limit_queue("default")
        scheduler.advance(seconds=30)
        assert account.began == [0, 10, 15, 15]
