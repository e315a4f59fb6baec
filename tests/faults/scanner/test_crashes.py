"""Scanners that die, sleep or compete: every occurrence is claimed once and reaches the queue."""

import asyncio
import random
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from horolog.application.decision import Decision, Guard, NewEvent, decide_on_partition
from horolog.application.log import Fences
from horolog.domain.ids import occurrence_id
from horolog.domain.occurrence import decide_claim, ordered
from horolog.domain.origin import Origin
from horolog.domain.partition import PartitionState, decide_election
from horolog.infrastructure.embedded import EmbeddedServers

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
        await stage.until_queued(len(jobs))
    await stage.check_claims(jobs)
    queued = await stage.queued()
    assert len(queued) == len({run.occurrence for run in queued}), "nothing is there twice"


async def test_a_killed_leader_is_succeeded_when_its_lease_has_ended(
    stage: "Stage",
) -> None:
    """Not before: its leases end by the database's clock. That nobody sleeps through their end is
    held by hand in `application/scanner/test_leadership.py`; bench/takeover.py measures it."""
    lease_s = 2.0
    with stage.child(lease_s=lease_s) as process:
        await stage.until(lambda: len(stage.leaders()) == 1)
        async with stage.scanner(lease_s=lease_s) as signals:
            await stage.until(lambda: len(stage.leaders()) == 2)
            process.kill()
            process.wait()
            ends = dict(stage.ask("SELECT partition, lease_until FROM :schema.partitions"))
            terms = dict(stage.ask("SELECT partition, token FROM :schema.partitions"))
            jobs = stage.register(50)
            await asyncio.wait_for(signals.reached("claimed", 50), 30)
            await stage.until(lambda: signals.counts["published"] >= 50)
    elections = stage.ask(
        "SELECT (state ->> 'partition')::int, version, recorded_at"
        " FROM :schema.log WHERE topic = 'partition.elected.1'"
    )
    successions = [(p, at) for p, token, at in elections if token > (terms[p] or 0)]
    assert len(successions) == len(ends) / 2
    assert all(at > ends[partition] for partition, at in successions)
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
        # Not what they published: who takes over publishes again what the other may have left.
        await stage.until(lambda: stage.claimed_jobs() == jobs)
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


async def test_a_fire_time_that_has_run_already_is_passed_over_when_a_clock_was_set_back(
    stage: "Stage",
) -> None:
    jobs = stage.register(5, in_s=-1)
    victim = min(jobs)
    # The log holds the occurrence already; the index does not know of it.
    [[fire]] = stage.ask("SELECT fire_time FROM :schema.next_runs WHERE id = %s", (victim,))
    ran = ordered(occurrence_id(victim, fire), victim, 0, fire, "schedule")
    claim = decide_claim(ran, job_version=1, token=1, window_s=1, origin=Origin("test"))
    decision = Decision(Guard("nothing", ran.id, 0), -1, [NewEvent(ran.id, 1, claim)])
    assert stage.log.append([decision]).verdicts == ["accepted"]
    async with stage.scanner() as signals:
        await asyncio.wait_for(signals.reached("published", 4), 10)
        await stage.until(
            lambda: (
                stage.ask("SELECT status FROM :schema.jobs WHERE id = %s", (victim,))
                == [("completed",)]
            )
        )
        assert signals.counts["conflict"] >= 2
        assert signals.counts["published"] == 4
    topics = [recorded.event.topic for recorded in stage.log.stream(victim)]
    assert topics == ["job.registered.1", "job.fires_skipped.1", "job.completed.1"]


async def test_a_row_that_cannot_be_read_stops_only_itself(stage: "Stage") -> None:
    jobs = stage.register(30)
    broken = sorted(jobs)[7]
    stage.ask("UPDATE :schema.jobs SET definition = '{\"name\": 5}' WHERE id = %s", (broken,))
    async with stage.scanner() as signals:
        await asyncio.wait_for(signals.reached("published", 29), 10)
        assert signals.counts["put_aside"] == 1
        stage.register(10)
        await asyncio.wait_for(signals.reached("published", 39), 10)
    assert broken not in stage.claimed_jobs()


async def test_a_run_that_cannot_be_read_does_not_keep_the_others_from_being_looked_after(
    stage: "Stage",
) -> None:
    jobs = stage.register(20, retry={"base": 0.1, "jitter": 0})
    broken = sorted(jobs)[7]
    async with stage.scanner(look_interval_s=0.1) as signals:
        await asyncio.wait_for(signals.reached("published", 20), 10)
        stage.attempt(await stage.queued(), lease_s=1.0)
        stage.ask("UPDATE :schema.jobs SET definition = '{\"name\": 5}' WHERE id = %s", (broken,))
        await asyncio.wait_for(signals.reached("lost", 19), 10)
        await asyncio.wait_for(signals.reached("published", 39), 10)
        assert signals.counts["put_aside"] == 1


async def test_when_postgres_was_away_it_goes_on_by_itself(
    make_stage: "Callable[[str, str], Stage]", own_servers: EmbeddedServers
) -> None:
    found = own_servers.find()
    assert found is not None
    stage = make_stage(found.database_url, found.nats_url)
    async with stage.scanner(lease_s=2) as signals:
        jobs = stage.register(20)
        await asyncio.wait_for(signals.reached("published", 20), 10)
        jobs |= stage.register(50, in_s=2)
        await asyncio.to_thread(own_servers.stop_postgres, "immediate")
        await asyncio.wait_for(signals.reached("store_away"), 10)
        await asyncio.to_thread(own_servers.start_postgres)
        await asyncio.wait_for(signals.reached("published", 70), 20)
        # Told at once again, not only found by the sweep.
        jobs |= stage.register(10)
        await asyncio.wait_for(signals.reached("published", 80), 10)
    await stage.check_claims(jobs)
