"""Troubles of every kind: what ends, stands still, is lost, is away, is slow, is full."""

from tests.simulation.plans.draft import Draft


def crash(draft: Draft) -> None:
    random = draft.random
    after = random.choice((0.0, 0.5, 5.0, 40.0)) * random.random()
    # Not at once, but when it has done so much more: when it is in the middle of something.
    draft.do(
        draft.moment(),
        "crash",
        draft.someone(),
        seconds=after,
        amount=float(random.choice((1, random.randint(1, 60)))),
    )


def freeze(draft: Draft) -> None:
    random = draft.random
    at = draft.moment()
    seconds = random.choice((1.0, 12.0, 45.0)) * random.uniform(0.3, 1.5)
    later = [moment for moment in draft.moments if 11.0 < moment - at < 60.0]
    if later and random.random() < 0.6:
        # It goes on just when something is due again, long after its lease has ended.
        seconds = random.choice(later) - at + random.uniform(-0.006, 0.004) / draft.tempo
    draft.do(
        at,
        random.choice(("freeze", "suspend")),
        draft.someone(),
        seconds=seconds,
        amount=float(random.choice((1, random.randint(1, 60)))),
    )


def stop(draft: Draft) -> None:
    after = draft.random.choice((0.0, 5.0, 30.0)) * draft.random.random()
    draft.do(draft.moment(), "stop", draft.someone(), seconds=after)


def loss(draft: Draft) -> None:
    random = draft.random
    kind = random.choice(
        (
            "log_answers_lost", "log_answers_lost", "log_requests_lost", "news_lost",
            "news_doubled", "queue_answers_lost", "words_lost", "words_doubled",
            "messages_lost", "confirmations_lost",
        )
    )  # fmt: skip
    target = random.choice(("", "", draft.someone()))
    seconds = random.choice((1.0, 10.0, 60.0)) * random.uniform(0.5, 1.5)
    draft.do(draft.moment(), kind, target, seconds=seconds, amount=random.choice((0.2, 0.6, 1.0)))


def outage(draft: Draft) -> None:
    random = draft.random
    kind = random.choice(("log_away", "queue_away", "log_cut", "queue_cut"))
    target = draft.someone() if kind.endswith("cut") else ""
    seconds = random.choice((0.5, 8.0, 30.0, 90.0)) * random.uniform(0.5, 1.5)
    draft.do(draft.moment(), kind, target, seconds=seconds)


def slowness(draft: Draft) -> None:
    random = draft.random
    draft.do(
        draft.moment(),
        random.choice(("slow_log", "slow_queue")),
        random.choice(("", draft.someone())),
        seconds=random.choice((10.0, 60.0)),
        amount=random.choice((0.3, 3.0)) * random.choice((1.0, draft.tempo)),
    )


def queue_harm(draft: Draft) -> None:
    random = draft.random
    kind = random.choice(
        ("delete_stream", "purge_stream", "lose_end", "delete_consumer", "deliver_again")
    )
    target = random.choice(("default", "mail")) if kind == "delete_consumer" else ""
    draft.do(draft.moment(), kind, target, amount=float(random.randint(1, 5)))


def full(draft: Draft) -> None:
    seconds = draft.random.choice((10.0, 60.0))
    draft.do(draft.moment(), "full", seconds=seconds, amount=float(draft.random.randint(0, 3)))


def clock(draft: Draft) -> None:
    random = draft.random
    if random.random() < 0.5:
        draft.do(draft.moment(), "log_clock_step", amount=random.choice((0.4, 5.0, 40.0)))
    else:
        amount = random.choice((-3600.0, -30.0, 30.0, 3600.0))
        draft.do(draft.moment(), "wall_clock_step", draft.someone(), amount=amount)


def all_away(draft: Draft) -> None:
    random = draft.random
    role = random.choice(("scanner", "worker"))
    seconds = random.choice((5.0, 40.0, 200.0)) * random.uniform(0.5, 1.5)
    draft.do(draft.moment(), "all_away", role, seconds=seconds)
