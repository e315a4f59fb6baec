"""An alert is said once, again while it lasts, and once more when it is over."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.alert import (
    MAX_TRIES,
    TAIL,
    AlertState,
    Breach,
    decide_alert,
    decide_delivery,
    evolve,
)
from horolog.domain.alert_events import AlertEvent, AlertResolved, AlertWay
from horolog.domain.origin import Origin

ME = Origin("scanner 1")
NOW = datetime(2027, 1, 1, tzinfo=UTC)
WAYS: list[AlertWay] = ["command", "webhook", "nats"]
NEW = AlertState(uuid4(), "dead_letter_depth", "team")


def after(state: AlertState, breach: Breach | None, now: datetime) -> tuple[AlertState, list[str]]:
    events = decide_alert(state, breach, repeat_s=60, ways=WAYS, now=now, origin=ME)
    for event in events:
        state = evolve(state, state.version + 1, now, event)
    return state, [event.topic.split(".")[1] for event in events]


def test_what_holds_is_said_once_then_repeated_then_resolved_and_may_come_again() -> None:
    breach, state, said = Breach(5, 3), NEW, list[str]()
    for seconds, holds in [(0, False), (1, True), (2, True), (60, True), (61, True), (62, True),
                           (121, True), (122, False), (123, False), (124, True)]:  # fmt: skip
        state, now = after(state, breach if holds else None, NOW + timedelta(seconds=seconds))
        said += [f"{seconds} {one}" for one in now]
    assert said == ["1 raised", "61 repeated", "121 repeated", "122 resolved", "124 raised"]


def test_since_when_is_kept_over_repetitions() -> None:
    state, _ = after(NEW, Breach(5, 3), NOW)
    state, _ = after(state, Breach(9, 3), NOW + timedelta(seconds=60))
    assert (state.since, state.value) == (NOW, 9)
    events = decide_alert(
        state, None, repeat_s=60, ways=[], now=NOW + timedelta(seconds=90), origin=ME
    )
    assert isinstance(events[0], AlertResolved)
    assert (events[0].since, events[0].seconds) == (NOW, 90.0)


def test_a_way_that_fails_is_tried_again_later_each_time_and_not_for_ever() -> None:
    state, _ = after(NEW, Breach(5, 3), NOW)
    now, waits = NOW, list[float]()
    while due := [tries for way, tries in state.pending(now) if way == "webhook"]:
        event = decide_delivery(state, "webhook", due[0] + 1, "no", now=now, origin=ME)
        state = evolve(state, state.version + 1, now, event)
        retry_at = state.failed["webhook"][1]
        if retry_at is None:
            break
        assert "webhook" not in dict(state.pending(retry_at - timedelta(microseconds=1)))
        waits.append((retry_at - now).total_seconds())
        now = retry_at
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert state.unreached == ["webhook"]
    # The next notice is a new chance.
    state, said = after(state, Breach(5, 3), now + timedelta(hours=1))
    assert said == ["repeated"]
    assert dict(state.pending(now + timedelta(hours=1))) == dict.fromkeys(WAYS, 0)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(WAYS), st.booleans()), max_size=120))
def test_the_end_of_the_stream_tells_all_that_matters(
    steps: list[tuple[bool, AlertWay, bool]],
) -> None:
    """Whatever happened, what is folded from the tail decides as the whole stream does."""
    state, stream, now = NEW, list[tuple[int, datetime, AlertEvent]](), NOW
    for holds, way, takes in steps:
        now += timedelta(seconds=45)
        events = decide_alert(
            state, Breach(5, 3) if holds else None, repeat_s=60, ways=WAYS, now=now, origin=ME
        )
        pending = dict(state.pending(now))
        if not events and way in pending:
            error = None if takes else "no"
            events = [decide_delivery(state, way, pending[way] + 1, error, now=now, origin=ME)]
        for event in events:
            stream.append((state.version + 1, now, event))
            state = evolve(state, state.version + 1, now, event)
        assert all(tries < MAX_TRIES for _, tries in state.pending(now))
    tail, known = stream[-TAIL:], NEW
    while tail and not hasattr(tail[0][2], "condition"):
        tail = tail[1:]
    for version, at, event in tail:
        known = evolve(known, version, at, event)
    if stream:
        assert known == state
