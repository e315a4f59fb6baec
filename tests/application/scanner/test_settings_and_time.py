"""Settings that contradict each other are refused; time goes by the database's clock."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.application.scanner.clock import DatabaseTime, instant, microseconds
from horolog.application.scanner.settings import ScannerSettings
from horolog.domain.errors import InvalidSetting


class HandClock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def monotonic(self) -> float:
        return self.at

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.at += timeout_s


def test_the_defaults_are_consistent() -> None:
    settings = ScannerSettings()
    assert settings.renew_s * 3 == settings.lease_s
    assert settings.near_s < settings.horizon_s


@pytest.mark.parametrize(
    "values",
    [
        {"lease_s": 0.001},
        {"horizon_s": 3, "sweep_s": 2},
        {"claim_window_s": 400},
        {"claim_window_s": 1, "look_interval_s": 2},
        {"claim_batch": 0},
        {"lease_s": -1},
        {"no_such_setting": 1},
    ],
)
def test_what_makes_no_sense_is_refused_with_its_name(values: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(values))):
        ScannerSettings(**values)


@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.floats(0, 0.2), st.floats(0, 1)), min_size=1, max_size=30
    )
)
def test_the_estimate_is_never_ahead_of_the_database(
    readings: list[tuple[float, float, float]],
) -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    ahead_s = 5_000.0  # the database's clock, ahead of ours

    def true_us() -> float:
        return (clock.at + ahead_s) * 1e6

    for pause, round_trip, where in readings:
        clock.at += pause
        if time.known:
            assert time.now_us() <= true_us() + 1
            assert time.now_at_most() >= instant(int(true_us()) - 1)
        sent = clock.at
        clock.at += round_trip * where
        stamp = int(true_us())
        clock.at += round_trip * (1 - where)
        assert abs(time.observe(sent, clock.at, stamp)) <= 0.2 + 1e-3
        assert true_us() - 0.2e6 - 10 <= time.now_us() <= true_us() + 1
        assert true_us() - 1 <= microseconds(time.now_at_most()) <= true_us() + 0.2e6 + 10


def test_a_step_of_the_databases_clock_is_followed_and_told() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    time.observe(clock.at, clock.at, 10_000_000)
    assert time.observe(clock.at, clock.at, 10_000_000 + 8 * 3600 * 1_000_000) == 8 * 3600
    assert time.observe(clock.at, clock.at, 10_000_000) == -8 * 3600
    assert time.now_us() == 10_000_000
