"""Ids name a firing: the same firing collides, different ones never do, and time orders them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.ids import (
    drawn_job_id,
    fire_time_floor,
    fraction,
    keyed_job_id,
    occurrence_id,
    partition_of,
)

JOB = UUID("0190b6a0-0000-8000-8000-000000000001")
instants = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 (the strategy adds the zone)
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(instants)
def test_every_delivery_of_one_firing_has_the_same_id(fire: datetime) -> None:
    elsewhere = fire.astimezone()
    assert occurrence_id(JOB, fire) == occurrence_id(JOB, elsewhere)


@given(instants, instants)
def test_firings_at_different_times_have_different_ids(one: datetime, other: datetime) -> None:
    assert (occurrence_id(JOB, one) == occurrence_id(JOB, other)) == (one == other)


@given(instants, st.uuids(), st.uuids())
def test_firings_of_different_jobs_have_different_ids(fire: datetime, a: UUID, b: UUID) -> None:
    assert (occurrence_id(a, fire) == occurrence_id(b, fire)) == (a == b)


def test_an_extra_run_is_not_the_scheduled_one() -> None:
    fire = datetime(2027, 3, 14, 7, tzinfo=UTC)
    kinds = {
        occurrence_id(JOB, fire),
        occurrence_id(JOB, fire, "trigger"),
        occurrence_id(JOB, fire, "trigger", "again"),
        occurrence_id(JOB, fire, "backfill"),
    }
    assert len(kinds) == 4


@given(instants, instants)
def test_ids_are_ordered_by_fire_time_to_the_millisecond(one: datetime, other: datetime) -> None:
    if other - one >= timedelta(milliseconds=1):
        assert occurrence_id(JOB, one) < occurrence_id(JOB, other)


@given(instants)
def test_a_range_of_time_is_a_range_of_ids(fire: datetime) -> None:
    assert fire_time_floor(fire) <= occurrence_id(JOB, fire)
    assert occurrence_id(JOB, fire) < fire_time_floor(fire + timedelta(milliseconds=1))


@given(instants)
def test_ids_are_version_8_of_the_standard_layout(fire: datetime) -> None:
    for identity in (occurrence_id(JOB, fire), keyed_job_id("n", str(fire))):
        assert identity.version == 8


def test_a_fire_time_before_1970_is_refused() -> None:
    with pytest.raises(ValueError, match="1970"):
        occurrence_id(JOB, datetime(1969, 12, 31, tzinfo=UTC))


def test_a_key_names_one_job_in_each_namespace() -> None:
    assert keyed_job_id("a", "bill-42") == keyed_job_id("a", "bill-42")
    assert keyed_job_id("a", "bill-42") != keyed_job_id("b", "bill-42")


def test_ids_drawn_with_different_entropy_differ() -> None:
    now = datetime(2027, 1, 1, tzinfo=UTC)
    assert drawn_job_id(now, b"0123456789") != drawn_job_id(now, b"0123456780")


@pytest.mark.parametrize("partitions", [1, 7, 64, 1024])
def test_partitions_are_even_enough_to_share_the_work(partitions: int) -> None:
    counts = [0] * partitions
    for number in range(partitions * 20):
        counts[partition_of(f"job-{number}", partitions)] += 1
    assert max(counts) < 20 * 3.5


@given(st.uuids(), st.text())
def test_the_fraction_of_an_identity_is_stable_and_below_one(identity: UUID, purpose: str) -> None:
    assert 0 <= fraction(identity, purpose) < 1
    assert fraction(identity, purpose) == fraction(identity, purpose)
