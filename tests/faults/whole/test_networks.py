"""The network between a scanner and its servers is cut, stalls, or swallows everything.

A silent network is noticed by nobody but a clock: no connection is reset, and what is sent is
acknowledged. The scanner gives it up within its ``answer_s``.
"""

import random
from collections.abc import Generator

import pytest
from tests.faults.system.account import account
from tests.faults.system.network import Networks, State, networks_before
from tests.faults.system.system import System

ANSWER_S = 2.0
STATES: list[State] = ["silent", "cut", "stalled"]
SERVERS = ["both", "postgres", "nats"]


@pytest.fixture
def networks(system: System) -> Generator[Networks]:
    with networks_before(system.settings) as found:
        yield found


def test_a_scanner_behind_a_broken_network_harms_nothing_and_comes_back(
    system: System, networks: Networks, long_fault_seed: int
) -> None:
    rng = random.Random(long_fault_seed)
    state, server = STATES[long_fault_seed % 3], SERVERS[long_fault_seed // 3 % 3]
    victim = system.start_scanner_at(networks.place, answer_s=ANSWER_S)
    system.until_ready(victim, system.start_worker())
    system.until(lambda: system.leads(victim), "it leads")
    other = system.start_scanner()
    system.until(lambda: system.leads(other), "it has company")
    begun = system.effects()
    system.register(120, over_s=1.5)
    system.until(lambda: system.effects() >= begun + rng.randint(5, 60), "work has begun")
    networks.become(state, server)
    if server != "nats":
        system.until(lambda: not system.leads(victim), "the other leads alone", 10)
        system.until_done(20)
    else:
        claimed = system.count("occurrence.claimed.1")
        system.register(60, over_s=0.5)
        system.until(lambda: system.count("occurrence.claimed.1") >= claimed + 60, "claims go on")
    before = networks.accepted(server)
    networks.become("open", server)
    # What is silent now stays so: it has to be given up, and made anew.
    system.until(lambda: system.leads(victim), "it leads again", 10)
    system.register(60, over_s=0.5)
    system.until_done(15)
    assert victim.status is None
    assert state == "stalled" or networks.accepted(server) > before
    found = account(system)
    assert found.problems == []
    assert found.report.lost == 0
