"""Sealed values: recognised, told apart from what only looks like them, and reworded in texts."""

import json
from uuid import UUID

import pytest

from horolog.domain.sealed import (
    Token,
    envelope,
    is_sealed,
    keys_within,
    reworded,
    sealed_text,
    token_of,
)

KEY = UUID("01a22c9a-5356-44bd-90d1-71186d7a0f6d")
TOKEN = Token(KEY, UUID(int=7), "AbC-_9")


def test_what_is_sealed_is_recognised() -> None:
    assert token_of(envelope(TOKEN)) == TOKEN
    assert token_of(sealed_text(TOKEN)) == TOKEN
    assert is_sealed(envelope(TOKEN))


@pytest.mark.parametrize(
    "value",
    [
        None, 3, "", [], {}, "text", {"$ref": "cards/42"}, {"amount": 10}, "$sealed:v1.nonsense",
        {"$sealed": True}, {"$sealed": "v1.nonsense"}, {**envelope(TOKEN), "more": 1},
        f"before {sealed_text(TOKEN)}",
    ],
)  # fmt: skip
def test_what_is_not_sealed_is_not_taken_for_it(value: object) -> None:
    assert token_of(value) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (sealed_text(TOKEN), "(x)"),
        (f"it failed: {sealed_text(TOKEN)}; again", "it failed: (x); again"),
        (f"returned {json.dumps(envelope(TOKEN))}", "returned (x)"),
        (f"returned {json.dumps(envelope(TOKEN))[:-4]}…", "returned (x)"),
        (f"failed: {sealed_text(TOKEN)[:-2]}…", "failed: (x)"),
        ("nothing is $sealed here", "nothing is $sealed here"),
    ],
)
def test_texts_that_quote_sealed_values_are_reworded(text: str, shown: str) -> None:
    assert reworded(text, lambda _: "(x)") == shown
    assert keys_within(text) == ({KEY} if shown != text else set())
