"""What a batch shares comes to what each job says by itself: the same events, rows and refusals."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from itertools import cycle, product
from typing import Any, cast
from uuid import UUID

import pytest

from horolog.application.commands.alike import Alike
from horolog.application.commands.context import Context
from horolog.application.commands.job_spec import JobSpec
from horolog.application.commands.registering import Candidate, candidate
from horolog.application.log import AppendsToLog
from horolog.application.states import ReadsStates
from horolog.domain.errors import HorologError
from horolog.domain.event import read_event
from horolog.domain.reference import Ref
from horolog.domain.retry import Retry
from horolog.domain.schedule import Calendar, Cron, Every, Once, Schedule, Union

NOW = datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)
SOON = NOW + timedelta(hours=1)


class Standing:
    def now(self) -> datetime:
        return NOW


class Counting:
    """Not random: two contexts draw the same."""

    def __init__(self) -> None:
        self.drawn = 0

    def draw(self, size: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size)


def context(traceparent: Callable[[], str | None] = lambda: None) -> Context:
    nobody: Any = None
    return Context(
        cast("AppendsToLog", nobody), cast("ReadsStates", nobody), Standing(), Counting(),
        "test", 32, 'me "correlation":"x" 100%b', traceparent=traceparent,
    )  # fmt: skip


SHARED = Retry(max_attempts=3, base=0.5)
SCHEDULES: list[Schedule] = [
    Once(SOON),
    Once("2027-03-28T02:30", zone="Europe/Berlin"),
    Every(60),
    Every(60, jitter=5),
    Every(86_400, zone="Europe/Berlin", keep_local_hour=True, start=SOON),
    Cron("*/5 * * * *", zone="UTC"),
    Cron("0 2 * * *", zone="America/New_York", limit=3, end=NOW + timedelta(days=900)),
    Cron("H H * * *", zone="UTC"),
    Cron("0 2 * * *", zone="UTC", exclude=[date(2026, 12, 1)]),
    Calendar("FREQ=MONTHLY;BYMONTHDAY=-1", zone="Europe/Berlin"),
    Union([Cron("0 9 * * *", zone="UTC"), Once(SOON)]),
]
PAYLOADS: list[Any] = [
    None,
    {},
    {"card": Ref("cards/42"), "amount": 10},
    {"schedule": {"payload": 1}, "partition": 3, '"payload":': '"next_fire":', "%": "%b %d é ☃"},
    {"numbers": [1, 1.0, -0.0, 1e300, True, None, 10**30], "text": '\u2028 \\ " \n \x7f'},
]
POLICIES: list[dict[str, Any]] = [
    {},
    {"queue": "billing", "priority": 7, "reason": 'for 100% of "key":'},
    {"priority": True},
    {"timeout": 30},
    {"timeout": 30.0, "owner": "team", "labels": {"b": "1", "a": "2"}},
    {"labels": {"a": "2", "b": "1"}},
    {"retry": SHARED},
    {"retry": Retry(max_attempts=3, base=0.5)},
    {"retry": Retry(base=-0.0)},
    {"retry": Retry(base=0.0)},
    {"concurrency_key": "card-1", "concurrency_limit": 2, "overlap": "skip"},
    {"catch_up": "all", "catch_up_window": 60, "expect_success_by": 3600},
]


def specs() -> list[JobSpec]:
    """Each schedule and each policy with each payload, and all twice: most are made from a form."""
    stated = [
        *zip(product(SCHEDULES, PAYLOADS), cycle(POLICIES), strict=False),
        *(((at, payload), rest) for at, (payload, rest) in zip(
            cycle(SCHEDULES), product(PAYLOADS, POLICIES), strict=False)),
    ]  # fmt: skip
    return [
        JobSpec("a.b", schedule=at, payload=payload, key=key and f"{key} {number}", **rest)
        for number, ((at, payload), rest) in enumerate([*stated, *stated])
        for key in (None, '"é%b')
    ]


def said(born: Candidate) -> tuple[object, ...]:
    decision = asdict(born.decision)
    events = [(new.stream, new.version, new.event, new.state()) for new in born.decision.events]
    return (decision | {"events": events}, born.state, born.state.definition.parsed_schedule())


def test_events_and_rows_are_byte_for_byte_those_of_each_job_alone() -> None:
    plain, batch, alike = context(), context(), Alike()
    alike.begin(NOW)
    from_forms = 0
    for number, spec in enumerate(specs()):
        job_id = None if spec.key is None else UUID(int=number)
        alone = candidate(plain, spec, job_id)
        among = candidate(batch, spec, job_id, alike)

        assert said(among) == said(alone), spec
        [new] = among.decision.events
        assert new.written == new.event.to_json()
        assert read_event(new.event.topic, new.state()) == new.event
        from_forms += new.written is not None
    assert from_forms == len(specs())


def test_each_batch_has_a_time_of_its_own() -> None:
    alike, spec = Alike(), JobSpec("a.b", schedule=Every(60))
    for now in (NOW, NOW + timedelta(days=1)):
        alike.begin(now)
        for _ in range(2):
            born = candidate(context(), spec, None, alike)

            assert born.state.next_fire == now + timedelta(seconds=60)
            assert born.decision.events[0].state() == born.decision.events[0].event.to_json()


def test_spans_that_change_within_a_batch_are_those_of_each_event() -> None:
    spans = iter(["00-a-b-01", None, "00-a-b-01", "00-c-d-01", None])
    traced, alike = context(lambda: next(spans)), Alike()
    alike.begin(NOW)
    for _ in range(5):
        [new] = candidate(traced, JobSpec("a.b", schedule=Once(SOON)), None, alike).decision.events

        assert new.state() == new.event.to_json()


@pytest.mark.parametrize(
    "wrong",
    [
        {"priority": 1.5},
        {"priority": 101},
        {"timeout": -1},
        {"queue": "a b"},
        {"labels": {"a": 1}},
        {"labels": ["a"]},
        {"retry": {"max_attempts": 5}},
        {"overlap": "never"},
        {"owner": "a\0"},
        {"payload": {"x": float("nan")}},
        {"payload": {"x": 10**5000}},
        {"payload": {"$sealed": 1}},
        {"schedule": "0 2 * * *"},
        {"schedule": Once(NOW - timedelta(days=1))},
        {"schedule": Once(NOW - timedelta(days=1)), "priority": 101},
    ],
)
def test_what_one_job_is_refused_for_is_refused_among_others_in_the_same_words(
    wrong: dict[str, Any],
) -> None:
    alike = Alike()
    alike.begin(NOW)
    fine = JobSpec("a.b", schedule=Once(SOON), priority=1)
    for _ in range(2):
        candidate(context(), fine, None, alike)
    stated: dict[str, Any] = {"schedule": Once(SOON), "priority": 1}
    spec = JobSpec("a.b", **(stated | wrong))

    alone = outcome(spec, None)
    assert outcome(spec, alike) == alone
    assert outcome(spec, alike) == alone


def outcome(spec: JobSpec, alike: Alike | None) -> object:
    try:
        return said(candidate(context(), spec, None, alike))
    except HorologError as refusal:
        return type(refusal), str(refusal)
