"""Jitter: the same for every delivery, spread over its range, never past the next fire time."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.schedule import jittered

FIRE = datetime(2027, 1, 1, tzinfo=UTC)
SPACE = UUID(int=7)


@given(st.floats(0, 1e6), st.uuids(), st.none() | st.floats(0.000001, 1e6))
def test_it_stays_in_its_range(jitter: float, identity: UUID, until_next: float | None) -> None:
    following = None if until_next is None else FIRE + timedelta(seconds=until_next)
    at = jittered(jitter, identity, FIRE, following)
    assert FIRE <= at <= FIRE + timedelta(seconds=jitter)
    assert following is None or at < following or at == FIRE
    assert at == jittered(jitter, identity, FIRE, following)


def test_it_spreads_evenly() -> None:
    delays = [
        (jittered(60, uuid5(SPACE, str(n)), FIRE, None) - FIRE).total_seconds() for n in range(4000)
    ]
    quarters = [sum(low <= delay < low + 15 for delay in delays) for low in (0, 15, 30, 45)]
    assert all(850 < count < 1150 for count in quarters)


def test_it_spreads_what_is_left_where_the_next_fire_time_is_near() -> None:
    following = FIRE + timedelta(seconds=10)
    delays = {jittered(3600, uuid5(SPACE, str(n)), FIRE, following) - FIRE for n in range(200)}
    assert max(delays) < timedelta(seconds=10)
    assert max(delays) > timedelta(seconds=9)
    assert len(delays) > 190


def test_none_is_none() -> None:
    assert jittered(0, SPACE, FIRE, None) == FIRE
