"""Topics are names for ever; old shapes read as new ones; text is made storable at the door."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.errors import UnreadableEvent
from horolog.domain.event import read_event
from horolog.domain.job_events import Paused
from horolog.domain.text import is_storable, storable


def test_what_has_its_default_is_left_out_of_the_state() -> None:
    assert json.loads(Paused(actor="ada").to_json()) == {"actor": "ada"}


def test_an_unknown_topic_is_named_with_its_place() -> None:
    with pytest.raises(UnreadableEvent, match=r"position 7.*'job\.paused\.9'"):
        read_event("job.paused.9", b"{}", where="position 7")


@pytest.mark.parametrize("state", [b"{", b"\xff", b'{"actor": 3}', b"[]", b""])
def test_a_state_that_cannot_be_read_is_named_with_its_place(state: bytes) -> None:
    with pytest.raises(UnreadableEvent, match="position 7"):
        read_event("job.paused.1", state, where="position 7")


def test_a_field_of_a_newer_release_is_no_obstacle() -> None:
    assert read_event("job.paused.1", b'{"actor":"ada","mood":"good"}') == Paused(actor="ada")


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_becomes_storable_and_what_was_storable_stays(text: str) -> None:
    mended = storable(text)
    assert is_storable(mended)
    if is_storable(text):
        assert mended == text


def test_a_long_text_says_how_much_was_cut() -> None:
    assert storable("x" * 100, limit=10) == "xxxxxxxxxx… (90 more characters)"
