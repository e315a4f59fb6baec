"""Scanners that die, sleep or compete: every occurrence is claimed once and reaches the queue."""

import asyncio
import random
import signal
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from horolog.application.decision import decide_on_partition
from horolog.application.log import Fences
from horolog.domain.origin import Origin
from horolog.domain.partition import PartitionState, decide_election

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage


@pytest.mark.parametrize("seed", range(4))
async def test_what_a_scanner_committed_before_it_died_is_published_by_its_successor(
    stage: "Stage", seed: int
) -> None:
    at = random.Random(seed).randint(1, 6)
    jobs = stage.register(100)
    with stage.child("appended", at, lease_s=1, claim_batch=16) as process:
        assert await asyncio.to_thread(process.wait, 30) == 9
    committed = len(stage.claims())
    assert committed > 0
    assert len(await stage.queued()) < committed
    async with stage.scanner() as signals:
        await asyncio.wait_for(signals.reached("claimed", len(jobs) - committed), 20)
        await stage.until(lambda: signals.counts["published"] >= len(jobs) - committed)
    await stage.check_claims(jobs)
    queued = await stage.queued()
    assert len(queued) == len({run.occurrence for run in queued}), "nothing is there twice"


async def test_a_killed_leader_is_succeeded_within_its_lease_and_a_second(
    stage: "Stage",
) -> None:
    lease_s = 2.0
    with stage.child(lease_s=lease_s) as process:
        await stage.until(lambda: len(stage.leaders()) == 1)
        async with stage.scanner(lease_s=lease_s) as signals:
            process.kill()
            killed = time.monotonic()
            jobs = stage.register(50)
            await asyncio.wait_for(signals.reached("claimed", 50), lease_s + 3)
            assert time.monotonic() - killed < lease_s + 1.5
            await stage.until(lambda: signals.counts["published"] >= 50)
    await stage.check_claims(jobs)


async def test_claims_under_an_old_token_are_refused_and_counted(stage: "Stage") -> None:
    async with stage.scanner(lease_s=30) as signals:
        await asyncio.wait_for(signals.reached("elected", 8), 10)
        # Somebody else is elected behind its back, while it believes in its lease.
        stage.ask("UPDATE :schema.partitions SET lease_until = '-infinity'")
        rows = stage.ask(
            "SELECT stream, partition, version, instance, token FROM :schema.partitions"
        )
        decisions = [
            decide_on_partition(
                state := PartitionState(*row),
                [decide_election(state, "usurper", 1.0, origin=Origin("test"))],
                1.0,
            )[0]
            for row in rows
        ]
        verdicts = stage.log.append(decisions, Fences("usurper", {})).verdicts
        assert set(verdicts) == {"accepted"}
        jobs = stage.register(40)
        await asyncio.wait_for(signals.reached("stale", 40), 10)
        assert stage.claims() == []
        assert stage.counter("stale_claims_refused") == 40
        assert signals.counts["deposed"] == len(
            {row[0] for row in stage.ask("SELECT partition FROM :schema.next_runs")}
        )
    # The usurper's lease ends: whoever comes next claims all of it under newer tokens.
    async with stage.scanner(lease_s=30) as signals:
        await asyncio.wait_for(signals.reached("published", 40), 10)
    await stage.check_claims(jobs)


@pytest.mark.parametrize("seed", range(2))
async def test_a_leader_that_was_stopped_past_its_lease_does_no_harm(
    stage: "Stage", seed: int
) -> None:
    rng = random.Random(seed)
    jobs: set[UUID] = set()
    settings: dict[str, Any] = {"lease_s": 0.6, "settle_s": 0.1, "claim_batch": 20}
    with stage.child(**settings) as process:
        await stage.until(lambda: len(stage.leaders()) == 1)
        async with stage.scanner(**settings) as signals:
            for _ in range(2):
                jobs |= stage.register(60)
                await asyncio.sleep(rng.random() * 0.02)  # the seed's moment
                process.send_signal(signal.SIGSTOP)
                jobs |= stage.register(60)
                await stage.until_claimed(len(jobs))
                process.send_signal(signal.SIGCONT)
                jobs |= stage.register(60)
                await stage.until_claimed(len(jobs))
            await stage.until(lambda: len(stage.leaders()) == 2)
            assert signals.counts["elected"] > 0
            process.send_signal(signal.SIGTERM)
            process.wait()
            await asyncio.sleep(settings["lease_s"])
            await stage.until(lambda: len(stage.leaders()) == 1)
            await asyncio.wait_for(signals.reached("marked"), 5)
            await stage.until(lambda: signals.counts["elected"] >= 8)
    await stage.check_claims(jobs)


async def test_two_scanners_share_the_work_and_claim_nothing_twice(stage: "Stage") -> None:
    jobs = stage.register(300)
    async with stage.scanner(settle_s=0.1) as first, stage.scanner(settle_s=0.1) as second:
        await stage.until(lambda: len(stage.leaders()) == 2)
        for tenth in range(10):
            jobs |= stage.register(50, in_s=tenth / 10)
        await stage.until(
            lambda: first.counts["published"] + second.counts["published"] >= len(jobs)
        )
        assert min(first.counts["claimed"], second.counts["claimed"]) > 100
    await stage.check_claims(jobs)
    assert stage.leaders() == set(), "both have given back what they led"


async def test_a_run_whose_worker_fell_silent_is_lost_and_tried_again(stage: "Stage") -> None:
    [job] = stage.register(1, retry={"base": 0.1, "jitter": 0})
    async with stage.scanner(look_interval_s=0.1) as signals:
        await asyncio.wait_for(signals.reached("published"), 10)
        stage.attempt(await stage.queued(), lease_s=0.3)
        await asyncio.wait_for(signals.reached("lost"), 10)
        await asyncio.wait_for(signals.reached("published", 2), 10)
    first, second = await stage.queued()
    assert (first.job, first.attempt, first.lost) == (job, 1, False)
    assert (second.job, second.attempt, second.lost) == (job, 2, True)
