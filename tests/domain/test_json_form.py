"""A form says what the model itself would say of other values."""

import pytest

from horolog.domain.json_form import JsonForm


def test_other_values_stand_where_the_first_ones_stood() -> None:
    form = JsonForm(b'{"a":1,"b":"x","c":{"a":1}}', [("a", b"1"), ("c", b'{"a":1}')])

    assert form.filled(b"22", b"[]") == b'{"a":22,"b":"x","c":[]}'


def test_percent_signs_stay_what_they_are() -> None:
    form = JsonForm(b'{"a":"100%","b":1,"c":"%b%s"}', [("b", b"1")])

    assert form.filled(b'"%d"') == b'{"a":"100%","b":"%d","c":"%b%s"}'


def test_a_text_that_looks_like_a_field_is_not_taken_for_one() -> None:
    written = rb'{"actor":"\"b\":1","b":1}'

    assert JsonForm(written, [("b", b"1")]).filled(b"2") == rb'{"actor":"\"b\":1","b":2}'


def test_a_value_that_was_not_written_is_no_form() -> None:
    with pytest.raises(ValueError, match="not found"):
        JsonForm(b'{"a":1}', [("b", b"1")])
