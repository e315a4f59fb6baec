"""Postgres and NATS are stopped, killed and wiped under load: it costs time, and nothing else."""

import pytest
from tests.faults.system.account import account
from tests.faults.system.system import System

from horolog.infrastructure.embedded import EmbeddedServers


def under_load(system: System) -> None:
    """A scanner and a worker in the middle of some hundred occurrences."""
    system.until_ready(system.start_scanner(), system.start_worker())
    system.register(240, over_s=3.0)
    system.until(lambda: system.effects() >= 40, "work has begun")


def settled(system: System) -> None:
    """Everything was done, in the processes of the beginning."""
    system.until_done(30)
    assert account(system).problems == []
    assert [process.status for process in system.processes] == [None] * len(system.processes)


def test_nats_is_stopped_and_killed_and_started_again(system: System) -> None:
    under_load(system)
    for end in (system.servers.stop_nats, system.servers.kill_nats):
        end()
        claimed = system.count("occurrence.claimed.1")
        system.register(60, over_s=1.0)
        system.until(
            lambda before=claimed: system.count("occurrence.claimed.1") > before,
            "the scanner goes on claiming",
        )
        system.servers.start_nats()
    settled(system)


@pytest.mark.parametrize("mode", ["fast", "immediate", "killed"])
def test_postgres_is_restarted(system: System, mode: str) -> None:
    under_load(system)
    if mode == "killed":
        system.servers.kill_postgres()
    else:
        system.servers.stop_postgres("fast" if mode == "fast" else "immediate")
    system.servers.start_postgres()
    system.register(60, over_s=1.0)
    settled(system)


def wiped(servers: EmbeddedServers) -> None:
    servers.kill_nats()
    servers.wipe_jetstream()
    servers.start_nats()


def test_the_directory_of_jetstream_is_deleted(system: System) -> None:
    under_load(system)
    wiped(system.servers)
    system.register(60, over_s=1.0)
    wiped(system.servers)
    settled(system)


def test_an_operator_deletes_the_consumer_and_the_stream(system: System) -> None:
    under_load(system)
    system.on_nats(lambda jetstream: jetstream.delete_consumer(system.stream, "default"))
    system.register(60, over_s=1.0)
    effects = system.effects()
    system.until(lambda: system.effects() > effects + 20, "work goes on")
    system.on_nats(lambda jetstream: jetstream.delete_stream(system.stream))
    system.register(60, over_s=1.0)
    settled(system)
