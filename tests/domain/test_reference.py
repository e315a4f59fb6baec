"""References in payloads: their JSON form, what is refused, and how they are replaced."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.errors import InvalidPayload
from horolog.domain.reference import Ref, find_refs, has_refs, payload_to_json, replace_refs


def test_a_ref_becomes_an_object_with_one_key() -> None:
    stored = payload_to_json({"card": Ref("cards/42"), "amount": 10})
    assert stored == {"card": {"$ref": "cards/42"}, "amount": 10}
    assert list(find_refs(stored)) == [Ref("cards/42")]


def test_refs_are_found_and_replaced_at_any_depth() -> None:
    stored = payload_to_json({"cards": [Ref("cards/1"), {"deep": (Ref("cards/2"),)}], "n": 1})
    assert list(find_refs(stored)) == [Ref("cards/1"), Ref("cards/2")]
    found = {Ref("cards/1"): "one"}
    assert replace_refs(stored, found) == {"cards": ["one", {"deep": [Ref("cards/2")]}], "n": 1}


@pytest.mark.parametrize("value", [{"$ref": 5}, {"$ref": "a", "more": 1}, {"$ref": ""}, {}])
def test_what_only_resembles_a_reference_is_left_alone(value: dict[str, Any]) -> None:
    assert not has_refs({"value": value})
    assert replace_refs(value, {}) == value


def test_a_resolver_is_looked_for_under_the_longest_prefix_first() -> None:
    assert list(Ref("billing/cards/42").prefixes()) == [
        "billing/cards/42",
        "billing/cards",
        "billing",
    ]


@pytest.mark.parametrize("path", ["", "x" * 600, "a\x00b", "a\ud800"])
def test_a_name_that_cannot_be_stored_is_refused(path: str) -> None:
    with pytest.raises(InvalidPayload, match="cards/42"):
        Ref(path)


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"a": float("nan")}, r"payload\.a is nan"),
        ({"a": [1, {"b": "x\x00"}]}, r"payload\.a\[1\]\.b holds NUL"),
        ({"a": "\ud800"}, r"payload\.a holds NUL or a lone surrogate"),
        ({"a": object()}, r"payload\.a is a object"),
        ({1: "a"}, r"payload has the key 1"),
        (["a"], r"this one is a list"),
    ],
)
def test_what_the_log_cannot_hold_is_refused_with_its_place(payload: Any, place: str) -> None:
    with pytest.raises(InvalidPayload, match=place):
        payload_to_json(payload)


def test_a_payload_nested_too_deeply_is_refused() -> None:
    nested: dict[str, Any] = {}
    nested["self"] = nested
    with pytest.raises(InvalidPayload, match="nested deeper"):
        payload_to_json(nested)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc$ref", max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", max_size=3), json_values))
def test_a_json_payload_comes_through_unchanged(payload: dict[str, Any]) -> None:
    stored = payload_to_json(payload)
    assert stored == payload
    assert json.loads(json.dumps(stored)) == payload
