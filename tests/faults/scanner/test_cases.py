"""Failures that others have reported of their schedulers, tried on this one's scanner.

Which test stands for which of them is listed in `tests/cases.md`.
"""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from horolog.interface.processes.scanner import instance_name

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage


async def test_however_late_a_run_is_a_killed_leader_doubles_and_loses_none_of_them(
    stage: "Stage",
) -> None:
    jobs: set[UUID] = set()
    for late_s in (31, 5 * 60, 3 * 3_600):
        jobs |= stage.register(30, ago_s=late_s)
    for at in (1, 2):
        with stage.child("appended", at, lease_s=1, claim_batch=16) as process:
            assert await asyncio.to_thread(process.wait, 30) == 9
    async with stage.scanner():
        await stage.until_claimed(len(jobs))
        await stage.until_queued(len(jobs))
    await stage.check_claims(jobs)


async def test_jobs_that_are_alike_in_everything_run_once_each(stage: "Stage") -> None:
    """In one instant, of one name, with one payload and one schedule."""
    jobs = stage.register(10, in_s=0.5, payload={"n": 1})
    async with stage.scanner():
        await stage.until_claimed(10)
        await stage.until_queued(10)
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 10


async def test_leadership_outlives_the_connections_that_it_was_won_over(stage: "Stage") -> None:
    """The lease is a row: no session holds it, and a recycled connection ends no term."""
    jobs: set[UUID] = set()
    async with stage.scanner(lease_s=3.0, sweep_s=0.5, horizon_s=5.0) as signals:
        await asyncio.wait_for(signals.reached("elected", 8), 10)
        for _ in range(5):
            ended = stage.ask(
                "SELECT count(pg_terminate_backend(pid))::int FROM pg_stat_activity"
                " WHERE application_name = %s AND pid <> pg_backend_pid()",
                (f"horolog/{stage.namespace}",),
            )
            assert ended[0][0] >= 1, "as many as are open again so soon"
            jobs |= stage.register(10)
            await stage.until_claimed(len(jobs))
        assert signals.counts["elected"] == 8
        assert stage.ask(
            "SELECT count(*) FROM :schema.log WHERE topic = 'partition.elected.1'"
        ) == [(8,)]
        await stage.until_queued(len(jobs))
    await stage.check_claims(jobs)


def test_no_two_starts_of_a_scanner_share_a_name_also_on_one_host() -> None:
    assert len({instance_name() for _ in range(100)}) == 100


@pytest.mark.parametrize("alike", [3])
async def test_scanners_of_one_host_never_lead_one_partition_together(
    stage: "Stage", alike: int
) -> None:
    """Three at once, one of which is replaced again and again around the instants."""
    jobs: set[UUID] = set()
    async with stage.scanner(settle_s=0.1), stage.scanner(settle_s=0.1):
        for _ in range(alike):
            async with stage.scanner(settle_s=0.1) as third:
                for tenth in range(5):
                    jobs |= stage.register(5, in_s=tenth / 10)
                await asyncio.wait_for(third.reached("elected", 1), 10)
        await stage.until_claimed(len(jobs))
        await stage.until_queued(len(jobs))
    await stage.check_claims(jobs)
