"""Two who take themselves for the leader, and leaders that are killed one after the other.

`make split-leaders SEEDS=50` tries as many timings.
"""

import random
from collections import Counter

from tests.faults.system.account import account
from tests.faults.system.load import under_load
from tests.faults.system.stranger import a_stranger_repeats
from tests.faults.system.system import System

from horolog.application.ready import decode

POINTS = ("deciding", "appended", "published", "whenever")


def test_a_leader_that_was_stopped_past_its_lease_harms_nothing(
    system: System, fault_seed: int
) -> None:
    """It stops with a batch in its hands: decided, or committed, or published; or at any time."""
    rng = random.Random(fault_seed)
    point = POINTS[fault_seed % len(POINTS)]
    if point == "whenever":
        sleeper = system.start_scanner()
    else:
        sleeper = system.start_faulty_scanner(point, rng.randint(1, 4), "SIGSTOP")
    system.until_ready(sleeper, system.start_worker())
    system.until(lambda: system.leads(sleeper), "it leads")
    other = system.start_scanner()
    with a_stranger_repeats(system, share=0.0) as listener:
        system.register(150, over_s=3.0)
        if point == "whenever":
            effects = system.effects() + rng.randint(0, 100)
            system.until(lambda: system.effects() >= effects, "it is at work")
            sleeper.stop()
        system.until(lambda: sleeper.is_stopped, "it is stopped")
        system.until(lambda: system.leads(other) and not system.leads(sleeper), "it is succeeded")
        system.until_done()
        sleeper.go_on()
        system.until(lambda: system.leads(sleeper), "it leads again")
        system.register(50, over_s=0.5)
        system.until_done()
    found = account(system)
    assert found.problems == []
    if point == "deciding":
        assert found.counters["stale_claims_refused"] >= 1
    nothing_is_claimed_twice(system)
    published = {(run.occurrence, run.attempt) for data in listener.heard for run in decode(data)}
    assert len(published) >= 200
    assert published <= claims(system).keys(), "nothing was published that the log had refused"


def test_leaders_that_are_killed_in_a_loop_under_load_harm_nothing(
    system: System, long_fault_seed: int
) -> None:
    rng = random.Random(long_fault_seed)
    scanners = [system.start_scanner() for _ in range(2)]
    system.until_ready(*scanners, system.start_worker())
    with under_load(system, 60.0, long_fault_seed):
        for _ in range(2 + long_fault_seed % 4):
            effects = system.effects() + rng.randint(1, 40)
            system.until(lambda enough=effects: system.effects() >= enough, "work goes on")
            system.until(lambda: any(map(system.leads, scanners)), "somebody leads")
            victim = rng.choice([scanner for scanner in scanners if system.leads(scanner)])
            victim.kill()
            scanners.remove(victim)
            scanners.append(system.start_scanner())
    system.until_done()
    assert account(system).problems == []
    nothing_is_claimed_twice(system)


def claims(system: System) -> Counter[tuple[object, int]]:
    """How often each attempt of each occurrence was claimed."""
    return Counter(
        (stream, attempt)
        for stream, attempt in system.ask(
            "SELECT stream, (state ->> 'attempt')::int FROM :schema.log"
            " WHERE topic = 'occurrence.claimed.1'"
        )
    )


def nothing_is_claimed_twice(system: System) -> None:
    assert [claim for claim, times in claims(system).items() if times > 1] == []
