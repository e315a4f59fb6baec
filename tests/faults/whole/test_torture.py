"""Everything at once, for twenty seconds; `make torture` does it for as long as it is given."""

import random

from tests.faults.system.system import System
from tests.faults.system.torture import report, torture


def test_nothing_is_lost_or_doubled_under_random_faults(system: System) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    run, found = torture(
        system, seed, seconds=15.0, per_second=30.0, pause_s=0.8, drain_s=60.0, say=print
    )
    assert found.problems == [], report(run, found, seed)
