"""Each fire time of a schedule ran once or has a reason that holds, and nothing else ran.

The fire times are counted out anew from the schedules that the user ordered.
"""

from collections import Counter
from datetime import datetime
from uuid import UUID

from tests.simulation.model.account import CHANGING, Account, Job
from tests.simulation.model.excuses import is_excused, reason
from tests.simulation.own_schedules import fire_times


def check_fire_times(account: Account, identity: UUID, job: Job) -> None:
    world = account.world
    assert world.rested_at is not None
    claimed = Counter(
        life.fire
        for life in account.lives.values()
        if life.job == identity and life.kind == "schedule"
    )
    for fire, count in claimed.items():
        if count > 1:
            account.say(f"{fire} of job {identity} has {count} occurrences")
    wanted: set[datetime] = set()
    for era in job.eras:
        until = min(era.until, world.rested_at)
        times = fire_times(era.schedule, era.since, until)
        wanted.update(times)
        for fire in times:
            if fire not in claimed and not is_excused(account, identity, job, era, fire):
                account.say(
                    f"{fire} of job {identity} ({job.spec['name']}) did not run, and"
                    f" {reason(job, fire)}"
                )
    backfilled = {
        life.fire
        for life in account.lives.values()
        if life.job == identity and life.kind == "backfill"
    }
    for fire in claimed.keys() - wanted - backfilled:
        if not any(
            fire in fire_times(era.schedule, era.since - CHANGING, era.until + CHANGING)
            for era in job.eras
        ):
            account.say(f"{fire} of job {identity} ran, and is no fire time of it")
