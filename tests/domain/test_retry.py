"""Retries grow, are capped and jittered, and end."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from horolog.domain.failure import FAILURE_KINDS, FailureKind
from horolog.domain.retry import Retry

NOW = datetime(2027, 1, 1, tzinfo=UTC)
ONE = uuid4()


def test_the_delay_doubles_from_the_base_up_to_the_cap() -> None:
    retry = Retry(max_attempts=10, base=1, factor=2, cap=10, jitter=0)
    assert [retry.delay_s(n, ONE) for n in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(st.integers(1, 999), st.floats(0, 1), st.floats(1, 100), st.uuids())
def test_jitter_only_adds_and_at_most_its_fraction(
    failures: int, jitter: float, factor: float, identity: UUID
) -> None:
    plain = Retry(base=0.5, factor=factor, cap=600, jitter=0).delay_s(failures, identity)
    jittered = Retry(base=0.5, factor=factor, cap=600, jitter=jitter).delay_s(failures, identity)
    assert plain <= jittered <= plain * (1 + jitter) + 1e-9


def test_jitter_is_the_same_each_time_it_is_computed() -> None:
    assert Retry().delay_s(3, ONE) == Retry().delay_s(3, ONE)
    assert len({Retry().delay_s(3, uuid4()) for _ in range(20)}) > 10


def test_no_retry_after_the_last_attempt() -> None:
    retry = Retry(max_attempts=3, jitter=0)
    assert retry.next_try("transport", 2, ONE, NOW) == NOW + timedelta(seconds=2)
    assert retry.next_try("transport", 3, ONE, NOW) is None


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_hopeless_failures_are_not_repeated_and_all_others_are(kind: FailureKind) -> None:
    hopeless = Retry().next_try(kind, 1, ONE, NOW) is None
    assert hopeless == (kind in ("argument", "permanent"))


def test_a_downstream_that_says_when_is_believed() -> None:
    retry = Retry(max_attempts=3, base=1)
    assert retry.next_try("retryable", 1, ONE, NOW, after_s=90) == NOW + timedelta(seconds=90)


@pytest.mark.parametrize(
    "wrong",
    [{"max_attempts": 0}, {"base": -1}, {"factor": 0.5}, {"jitter": 2}, {"cap": float("inf")}],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Retry.model_validate(wrong)


def test_no_try_begins_later_than_the_longest_time_after_the_first() -> None:
    retry = Retry(max_attempts=100, base=10, factor=1, jitter=0, max_elapsed=60)
    since = datetime(2027, 1, 1, tzinfo=UTC)
    at = [since + timedelta(seconds=seconds) for seconds in (50, 51)]
    assert retry.next_try("transport", 1, UUID(int=1), at[0], since=since) == since + timedelta(
        seconds=60
    )
    assert retry.next_try("transport", 1, UUID(int=1), at[1], since=since) is None
    assert retry.next_try("transport", 1, UUID(int=1), at[1], after_s=9, since=since) is not None
    assert retry.next_try("transport", 1, UUID(int=1), at[1]) is not None
