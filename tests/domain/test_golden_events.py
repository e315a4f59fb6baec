"""Every shape in which an event was ever released is read as it was, and written again the same.

A file here is never changed after its release: where an event changes its meaning it gets a new
topic, a new file, and a step from the old shape to the new one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from horolog.domain import (
    alert_events,
    log_events,
    occurrence_events,
    partition,
    subject_events,
)
from horolog.domain import event as events
from horolog.domain.event import Event, read_event, topics, upcast_from
from horolog.domain.job_events import Paused, Registered

# A topic is known once the module that declares its event is imported.
DECLARING = (alert_events, log_events, occurrence_events, partition, subject_events)
LATER = {"traceparent"}
"""What every event may say since these files were written; they stay as they are."""
GOLDEN = sorted(Path(__file__).with_name("golden").glob("*.json"))


def test_every_topic_that_is_written_has_its_file() -> None:
    released = {file.stem for file in GOLDEN}
    assert set(topics()) <= released


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
@pytest.mark.parametrize("shape", ["full", "least"])
def test_a_released_shape_is_read_and_written_again_the_same(file: Path, shape: str) -> None:
    stated: dict[str, Any] = json.loads(file.read_text())[shape]
    event = read_event(file.stem, json.dumps(stated).encode())
    if file.stem in topics():
        assert event.topic == file.stem
        assert json.loads(event.to_json()) == stated
    assert read_event(event.topic, event.to_json()) == event


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_the_full_shape_states_every_field(file: Path) -> None:
    """A field that is added later has a default: events without it are in the log already."""
    full: dict[str, Any] = json.loads(file.read_text())["full"]
    if file.stem in topics():
        event = read_event(file.stem, json.dumps(full).encode())
        assert set(full) | LATER == set(type(event).model_fields) | LATER


def test_what_every_event_may_say_since_later_is_written_and_read_again() -> None:
    paused = Paused(actor="ann", traceparent=f"00-{'1' * 32}-{'2' * 16}-01")
    assert read_event(Paused.topic, paused.to_json()) == paused
    assert b"traceparent" not in Paused(actor="ann").to_json()


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> type[Event]:
    """A topic of the test's own, forgotten afterwards."""
    for registry in ("_classes", "_upcasters"):
        monkeypatch.setattr(events, registry, dict(vars(events)[registry]))

    class Renamed(Event, topic="test.renamed.3"):
        minutes: float
        place: str = "here"

    return Renamed


def test_an_old_topic_is_read_as_the_newest_step_by_step(made_up: type[Event]) -> None:
    @upcast_from("test.renamed.1", "test.renamed.2")
    def _(state: dict[str, Any]) -> dict[str, Any]:
        return {"minutes": state.pop("hours") * 60, **state}

    @upcast_from("test.renamed.2", "test.renamed.3")
    def _(state: dict[str, Any]) -> dict[str, Any]:
        return {"place": "there", **state}

    oldest = read_event("test.renamed.1", b'{"hours": 2, "actor": "ann"}')
    assert oldest == made_up(actor="ann", minutes=120, place="there")  # pyright: ignore[reportCallIssue]
    assert oldest.topic == "test.renamed.3"
    middle = read_event("test.renamed.2", b'{"minutes": 5, "place": "elsewhere"}')
    assert middle == made_up(minutes=5, place="elsewhere")  # pyright: ignore[reportCallIssue]


def test_a_topic_that_is_still_written_has_no_step_from_it() -> None:
    with pytest.raises(AssertionError, match="is still written"):
        upcast_from(Paused.topic, "job.paused.2")(lambda state: state)


def test_no_two_events_share_a_topic() -> None:
    with pytest.raises(AssertionError, match="two events share the topic"):
        type("Second", (Event,), {"__module__": __name__}, topic=Registered.topic)
