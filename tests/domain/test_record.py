"""A record is a value: equal by value, a key of a dictionary, without room for other fields."""

import pytest

from horolog.domain.record import record


@record
class Place:
    row: int
    seat: str = "a"


def test_records_are_equal_by_value_and_may_be_keys() -> None:
    assert Place(1) == Place(1, "a") != Place(1, "b")
    assert {Place(1): "taken"}[Place(1, "a")] == "taken"


def test_a_record_has_its_fields_and_no_others() -> None:
    with pytest.raises(AttributeError):
        Place(1).colour = "red"  # pyright: ignore[reportAttributeAccessIssue]
