"""Every claim is in the ready queue soon after it is in the log."""

from itertools import pairwise

from tests.simulation.model.account import Account

OUTAGES = frozenset({"queue_away", "queue_cut", "log_away", "log_cut"})
"""Who would publish cannot while one of these lasts."""

QUEUE_TROUBLES = frozenset(
    {
        "slow_queue", "slow_log", "full", "delete_stream", "lose_end", "purge_stream",
        "delete_consumer", "messages_lost", "confirmations_lost", "queue_requests_lost",
        "queue_answers_lost", "log_answers_lost", "log_requests_lost", "freeze", "suspend",
        "log_clock_step",
    }
)  # fmt: skip
"""A plan with one of these does not say when a claim has to be in the queue."""


def check_publishing(account: Account) -> None:
    """Every claim is in the queue soon, if not at once: by its leader or by the next one. Where
    scanners die that is a lease away, and no claim has to wait for its window to end."""
    plan = account.world.plan
    if plan.bounds or any(a.kind in QUEUE_TROUBLES for a in plan.actions):
        return
    soon = 24.0 * plan.tempo + 3.0
    intervals = _outages(account)
    for identity, life in account.lives.items():
        for event in life.events:
            if event.kind != "claimed":
                continue
            attempt = event.state["attempt"]
            after = next((e for e in life.events if e.version == event.version + 1), None)
            if after is not None and after.kind in ("recalled", "skipped"):
                continue
            arrived = account.world.witness.arrived.get((identity, attempt))
            at = claimed = account.seconds(event.at)
            for began, ended in intervals:
                if began <= at + soon:
                    at = max(at, ended)
            if arrived is None or arrived > at + soon:
                when = "never" if arrived is None else f"{arrived - claimed:.1f} s later"
                account.say(f"attempt {attempt} of {identity} was claimed and published {when}")


def _outages(account: Account) -> list[tuple[float, float]]:
    """From when to when nobody could publish, or somebody has to take over what was left."""
    plan, world = account.world.plan, account.world
    found = [(a.at, a.at + a.seconds) for a in plan.actions if a.kind in OUTAGES]
    counts = [*world.scanners_alive, (world.loop.now, 0)]
    found += [(at, until) for (at, alive), (until, _) in pairwise(counts) if not alive]
    found += [
        (at, at)
        for name, machine in world.lives.items()
        if name.startswith("scanner")
        for at in machine.troubled_at
    ]
    return sorted(found)
