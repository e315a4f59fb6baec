"""One node of a cluster is lost for good: the system goes on with what is left."""

from collections.abc import Generator
from pathlib import Path

import pytest
from nats.js import JetStreamContext
from tests.faults.clusters.nats_cluster import NatsCluster
from tests.faults.clusters.postgres_pair import PostgresPair
from tests.faults.system.account import account
from tests.faults.system.system import System

from horolog.infrastructure.embedded import EmbeddedServers


@pytest.fixture
def nats_cluster(tmp_path: Path) -> Generator[NatsCluster]:
    cluster = NatsCluster(tmp_path)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def pair(own_servers: EmbeddedServers) -> Generator[PostgresPair]:
    both = PostgresPair(own_servers, own_servers.home.parent / "standby")
    both.start_standby()
    try:
        yield both
    finally:
        both.close()


def under_load(system: System, **scanner: int) -> None:
    system.until_ready(system.start_scanner(**scanner), system.start_worker())
    system.register(120, over_s=2.0)
    system.until(lambda: system.effects() >= 30, "work has begun")


def settled(system: System) -> None:
    system.register(60, over_s=0.5)
    system.until_done(60)
    assert account(system).problems == []
    assert [process.status for process in system.processes] == [None] * len(system.processes)


def test_the_queue_outlives_the_node_that_led_it(
    own_servers: EmbeddedServers, nats_cluster: NatsCluster, namespace: str, tmp_path: Path
) -> None:
    with System(own_servers, namespace, tmp_path, nats_url=nats_cluster.url) as system:
        under_load(system, stream_replicas=3)

        async def leader(jetstream: JetStreamContext) -> str:
            info = await jetstream.stream_info(system.stream)
            assert info.config.num_replicas == 3
            assert info.cluster is not None
            return info.cluster.leader or ""

        async def created(jetstream: JetStreamContext) -> object:
            return (await jetstream.stream_info(system.stream)).created

        born = system.on_nats(created)
        nats_cluster.kill_node(system.on_nats(leader))
        settled(system)
        assert system.on_nats(created) == born, "the same stream, not one made anew"


def test_nothing_acknowledged_is_lost_when_a_standby_takes_over(
    pair: PostgresPair, own_servers: EmbeddedServers, namespace: str, tmp_path: Path
) -> None:
    with System(own_servers, namespace, tmp_path, database_url=pair.url) as system:
        under_load(system)
        pair.lose_the_first()
        settled(system)
