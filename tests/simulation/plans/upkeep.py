"""Who keeps the log meanwhile, and who follows it. Drawn apart: they change no other plan."""

from random import Random

from tests.simulation.plans.draft import Draft


def prune(draft: Draft) -> None:
    """Some plans have an operator who prunes what is old enough; drawn apart."""
    random = Random(f"prunings {draft.seed}")
    if draft.focus == "old leaders":
        return
    for _ in range(random.choice((0, 0, 1, 3))):
        at = random.uniform(150.0, max(160.0, draft.units))
        draft.do(at, "prune", what={"age_s": random.choice((30.0, 120.0)) * draft.tempo})


def rebuild(draft: Draft) -> None:
    """Some have one who builds the read models anew meanwhile; drawn apart."""
    random = Random(f"rebuilds {draft.seed}")
    for _ in range(random.choice((0, 0, 1, 2))):
        at = draft.units * random.uniform(0.1, 1.0)
        if draft.moments and random.random() < 0.7:
            at = random.choice(draft.moments) - random.uniform(0.0, 0.15) / draft.tempo
        draft.do(min(max(0.0, at), draft.units), "rebuild")


def follow(draft: Draft) -> int:
    """How many processes run a user's projection, and what befalls them; drawn apart."""
    random = Random(f"followers {draft.seed}")
    followers = random.choice((0, 0, 1, 2))
    if followers and draft.focus == "everything":
        for _ in range(random.randint(0, 4)):
            target = f"follower-{random.randrange(followers)}"
            at, seconds = random.uniform(0.0, draft.units), random.choice((0.5, 20.0, 90.0))
            kind = random.choice(("crash", "crash", "freeze", "stop"))
            steps = float(random.randint(1, 30))
            draft.do(at, kind, target, seconds=seconds, amount=steps)
    return followers
