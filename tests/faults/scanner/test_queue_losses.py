"""A queue that is away, full, forgetful or gone: costs time, loses nothing, multiplies nothing."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage

MakeStage = Callable[[str, str], "Stage"]


def staged(make_stage: MakeStage, servers: EmbeddedServers) -> "Stage":
    found = servers.find()
    assert found is not None
    return make_stage(found.database_url, found.nats_url)


async def test_while_nats_is_away_claiming_stops_at_its_bound_and_goes_on_by_itself(
    make_stage: MakeStage, own_servers: EmbeddedServers
) -> None:
    stage = staged(make_stage, own_servers)
    await asyncio.to_thread(own_servers.stop_nats)
    async with stage.scanner(max_unpublished=50, publish_timeout_s=1) as signals:
        jobs = stage.register(400)
        await asyncio.wait_for(signals.reached("held_back"), 10)
        await asyncio.wait_for(signals.reached("queue_away"), 10)
        assert 50 <= len(stage.claims()) < 60
        counts = signals.counts.copy()
        await asyncio.wait_for(signals.reached("looked", counts["looked"] + 1), 10)
        tried = sum((signals.counts - counts).values())
        assert tried < 50, "it waits and does not turn in circles"
        await asyncio.to_thread(own_servers.start_nats)
        await asyncio.wait_for(signals.reached("published", 400), 20)
        await asyncio.to_thread(own_servers.stop_nats)
        jobs |= stage.register(20)
        await asyncio.wait_for(signals.reached("claimed", 420), 10)
        await asyncio.to_thread(own_servers.start_nats)
        await asyncio.wait_for(signals.reached("published", 420), 20)
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 420


async def test_a_store_directory_that_is_gone_costs_only_time(
    make_stage: MakeStage, own_servers: EmbeddedServers
) -> None:
    stage = staged(make_stage, own_servers)
    async with stage.scanner(publish_timeout_s=1, look_interval_s=0.3) as signals:
        jobs = stage.register(150)
        await asyncio.wait_for(signals.reached("published", 150), 20)
        await asyncio.wait_for(signals.reached("looked", signals.counts["looked"] + 1), 10)
        await asyncio.to_thread(own_servers.wipe_jetstream)
        await asyncio.to_thread(own_servers.kill_nats)
        await asyncio.to_thread(own_servers.start_nats)
        jobs |= stage.register(10)
        # Long before the claim window of 30 s ends.
        await asyncio.wait_for(signals.reached("stream_lost"), 10)
        await asyncio.wait_for(signals.reached("published", 310), 10)
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 160


async def test_a_store_directory_that_is_deleted_under_a_running_server_costs_only_time(
    make_stage: MakeStage, own_servers: EmbeddedServers
) -> None:
    stage = staged(make_stage, own_servers)
    async with stage.scanner(publish_timeout_s=1, look_interval_s=0.3) as signals:
        jobs = stage.register(50)
        await asyncio.wait_for(signals.reached("published", 50), 20)
        await asyncio.to_thread(own_servers.wipe_jetstream)
        # More than the server has a file open for: from there on it does not answer.
        for _ in range(10):
            jobs |= stage.register(10, payload={"blob": "x" * 120_000})
        await asyncio.wait_for(signals.reached("stream_lost"), 20)
        async with asyncio.timeout(20):
            while len(await stage.queued()) < 150:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.1)
    await stage.check_claims(jobs)


async def test_a_stream_that_an_operator_deleted_is_made_and_filled_again(stage: "Stage") -> None:
    client, jetstream = await connect(stage.nats_url)
    async with stage.scanner(look_interval_s=0.2) as signals:
        jobs = stage.register(30)
        await asyncio.wait_for(signals.reached("published", 30), 20)
        looked = signals.counts["looked"]
        await asyncio.wait_for(signals.reached("looked", looked + 2), 10)
        await jetstream.delete_stream(f"{stage.namespace}_ready")
        await asyncio.wait_for(signals.reached("published", 60), 10)
    await client.close()
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 30


async def test_messages_that_vanished_are_published_again_when_their_window_ends(
    stage: "Stage",
) -> None:
    client, jetstream = await connect(stage.nats_url)
    async with stage.scanner(claim_window_s=1, max_window_s=2, look_interval_s=0.2) as signals:
        jobs = stage.register(30)
        await asyncio.wait_for(signals.reached("published", 30), 20)
        await jetstream.purge_stream(f"{stage.namespace}_ready")
        await asyncio.wait_for(signals.reached("published", 60), 10)
    await client.close()
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 30


async def test_while_workers_are_away_windows_are_extended_and_no_message_is_sent_twice(
    stage: "Stage",
) -> None:
    settings = {"claim_window_s": 0.5, "max_window_s": 1, "look_interval_s": 0.1}
    async with stage.scanner(**settings) as signals:
        jobs = stage.register(50) | stage.register(150, queue="flooded")
        await asyncio.wait_for(signals.reached("extended", 800), 20)
        assert signals.counts["published"] == 200
    # A successor knows nothing of these messages: it goes through the stream once and learns.
    async with stage.scanner(**settings) as signals:
        await asyncio.wait_for(signals.reached("extended", 400), 20)
        assert signals.counts["scanned"] >= 1
        assert signals.counts["published"] == 0
    await stage.check_claims(jobs)
    assert len(await stage.queued()) == 200


async def test_a_full_stream_holds_claims_back_and_takes_them_when_there_is_room(
    stage: "Stage",
) -> None:
    client, jetstream = await connect(stage.nats_url)
    name = f"{stage.namespace}_ready"
    async with stage.scanner(max_unpublished=20, max_backoff_s=0.3, flood_runs=1000) as signals:
        stage.register(1)
        await asyncio.wait_for(signals.reached("published"), 10)
        config = (await jetstream.stream_info(name)).config
        config.max_msgs = 10
        await jetstream.update_stream(config)  # pyright: ignore[reportUnknownMemberType]
        stage.register(100)
        await asyncio.wait_for(signals.reached("refused", 30), 20)
        await asyncio.wait_for(signals.reached("held_back"), 10)
        assert signals.counts["published"] == 10
        assert len(stage.claims()) <= 30
        config.max_msgs = 1000
        await jetstream.update_stream(config)  # pyright: ignore[reportUnknownMemberType]
        await asyncio.wait_for(signals.reached("published", 101), 20)
    await client.close()
    assert len({run.occurrence for run in await stage.queued()}) == 101
