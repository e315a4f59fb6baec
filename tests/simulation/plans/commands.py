"""What users order: by command, in transactions of their own, and again where nobody answered."""

from random import Random
from typing import Any

from tests.simulation.plans.draft import Draft
from tests.simulation.plans.jobs import schedule_of, spec_of


def command(draft: Draft) -> None:
    random = draft.random
    number = random.randrange(max(1, draft.jobs))
    kind = random.choice(
        (
            "pause", "resume", "resume", "cancel", "reschedule", "update", "update", "trigger",
            "trigger", "replay", "replay", "discard", "cancel_run", "cancel_run", "backfill",
            "limit_queue", "register_again",
        )
    )  # fmt: skip
    at = draft.moment()
    what: dict[str, Any] = {"job": number}
    match kind:
        case "pause":
            back = at + random.choice((0.01, 20.0, 120.0)) * random.random()
            draft.do(back, "resume", what={"job": number, "catch_up": random.random() < 0.3})
        case "resume":
            what["catch_up"] = random.random() < 0.3
        case "reschedule":
            what["schedule"] = schedule_of(draft, at)
        case "update":
            what["n"] = random.randint(1, 1_000)
        case "trigger":
            what["request_id"] = random.choice((None, f"request-{random.randint(0, 2)}"))
            what["in_s"] = random.choice((None, 5.0 * draft.tempo))
        case "backfill":
            what["back_s"] = random.choice((60.0, 300.0)) * draft.tempo
        case "limit_queue":
            what = {
                "queue": random.choice(("default", "mail")),
                "limit": random.choice((None, 1, 3)),
                "rate": random.choice((None, None, 1.0)),
            }
        case _:
            pass
    draft.do(at, kind, what=what)
    if kind == "limit_queue":
        later = at + random.uniform(5.0, 200.0)
        draft.do(later, "limit_queue", what={**what, "limit": None, "rate": None})


def give(draft: Draft) -> None:
    """Some plans have a client who gives commands in transactions of its own, and takes some of
    them back."""
    with draft.apart("given") as random:
        for number in range(random.choice((0, 0, 1, 3, 6))):
            at, job = draft.moment(), random.randrange(max(1, draft.jobs))
            what: dict[str, Any] = {"given": random.choice(("commit", "commit", "rollback"))}
            match random.choice(("register", "trigger", "trigger", "update")):
                case "register":
                    draft.do(at, "register", what={**what, "spec": spec_of(draft, at)})
                    draft.jobs += 1
                case "update":
                    draft.do(at, "update", what={**what, "job": job, "n": random.randint(1, 1_000)})
                case _:
                    request = f"given-{number}"
                    draft.do(at, "trigger", what={**what, "job": job, "request_id": request})


def ask_again(draft: Draft) -> None:
    """By a user who was not told, or was told too late: the same request of the same job. Drawn
    apart, as what a client gives."""
    random = Random(f"again {draft.seed}")
    for action in list(draft.actions):
        request = action.what.get("request_id")
        if action.kind != "trigger" or request is None or "given" in action.what:
            continue
        if random.random() < 0.7:
            at = action.at / draft.tempo + random.choice((0.0, 0.2, 30.0)) * random.random()
            what = {**action.what, "in_s": random.choice((None, action.what["in_s"]))}
            draft.do(min(at, draft.units), "trigger", what=what)
