"""The jobs of a plan: their schedules and their policies."""

from datetime import timedelta
from random import Random
from typing import Any

from tests.simulation.handlers import NAMES
from tests.simulation.plans.draft import Draft

ZONES = ("America/New_York", "Europe/London", "Europe/Berlin", "Australia/Lord_Howe", "UTC")


def register(draft: Draft, at: float) -> None:
    spec = spec_of(draft, at)
    draft.do(at, "register", what={"spec": spec})
    draft.jobs += 1


def spec_of(draft: Draft, at: float) -> dict[str, Any]:
    random, tempo = draft.random, draft.tempo
    policies: dict[str, Any] = {
        "overlap": "allow"
        if draft.focus == "old leaders"
        else random.choice(("allow", "allow", "skip", "buffer_one", "buffer_all", "cancel_other")),
        "catch_up": random.choice(("latest", "latest", "earliest", "all", "all", "skip")),
        "catch_up_window": random.choice((60.0, 600.0, 86_400.0)) * max(1.0, tempo),
        "retry": {
            "max_attempts": random.randint(1, 5),
            "base": random.choice((0.5, 2.0, 10.0)) * tempo,
            "cap": 40.0 * tempo,
            "jitter": random.choice((0.0, 0.2)),
        },
        "queue": random.choice(("default", "default", "mail")),
        "priority": random.choice((0, 0, 5)),
        "on_unknown": random.choice(("retry", "retry", "dead_letter")),
    }
    if policies["catch_up"] == "all":
        policies["catch_up_rate"] = random.choice((0.2, 2.0, 50.0))
    if random.random() < 0.2:
        policies["timeout"] = random.choice((5.0, 40.0)) * tempo
    if random.random() < 0.25:
        policies["concurrency_limit"] = random.randint(1, 2)
        if random.random() < 0.6:
            policies["concurrency_key"] = random.choice(("a", "b"))
            policies["concurrency_limit"] = {"a": 1, "b": 2}[policies["concurrency_key"]]
    if random.random() < 0.1:
        policies["rate_limit"] = random.choice((0.05, 1.0))
    policies["catch_up_window"] = min(policies["catch_up_window"], 300 * 86_400.0)
    # Drawn apart: who watches changes nothing of what there is to see.
    watching = Random(f"deadlines {draft.seed} {draft.jobs}")
    for deadline in ("start_within", "finish_within"):
        if watching.random() < 0.3:
            policies[deadline] = watching.choice((1.0, 10.0, 60.0)) * tempo
    if watching.random() < 0.25:
        policies["expect_success_by"] = watching.choice((20.0, 90.0, 400.0)) * tempo
    return {
        "name": random.choice(NAMES) if random.random() < 0.97 else "nobodys",
        "key": f"job-{draft.jobs}",
        "schedule": schedule_of(draft, at),
        "policies": policies,
    }


def schedule_of(draft: Draft, at: float) -> dict[str, Any]:
    random, tempo = draft.random, draft.tempo
    kind = random.random()
    if kind < 0.15:
        due = at + random.choice((0.5, 5.0, 60.0, 300.0)) * random.random() / 1.0 + 2.0 / tempo
        draft.moments.append(due)
        moment = draft.start + timedelta(seconds=due * tempo)
        return {"kind": "once", "at": moment.isoformat()}
    if kind < 0.35 and tempo >= 8.0:
        return _cron(draft)
    every = random.choice((15.0, 30.0, 60.0, 120.0)) * (1.0 if tempo < 60 else 2.0)
    phase = random.choice((0.0, 0.0, 7.0))
    draft.moments += [
        phase + n * every for n in range(int(draft.units / every)) if phase + n * every > at
    ][:40]
    anchor = draft.start + timedelta(seconds=phase * tempo)
    return {"kind": "every", "seconds": every * tempo, "anchor": anchor.isoformat()}


def _cron(draft: Draft) -> dict[str, Any]:
    random = draft.random
    zone = random.choice(ZONES)
    if draft.tempo < 60.0:
        step = random.choice((5, 10, 20))
        return {"kind": "cron", "minutes": f"*/{step}", "hours": "*", "zone": zone}
    minutes = ",".join(str(m) for m in sorted(random.sample((0, 15, 30, 59), 2)))
    hours = random.choice(("*/2", "1,2,3", "2", "0,1,2,3,12", "*"))
    return {"kind": "cron", "minutes": minutes, "hours": hours, "zone": zone}
