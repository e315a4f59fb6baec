"""What the mapper writes is what the log holds: stable topics, JSON, read in its newest shape."""

import json
import zlib
from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import MapperDeserialisationError, StoredEvent
from eventsourcing.utils import Environment

from horolog.domain import event as event_module
from horolog.domain.event import Event, upcast_from
from horolog.domain.occurrence_events import Failed
from horolog.infrastructure.eventsourcing.mapper import HorologMapper, Placed

STREAM = UUID(int=7)
RETRY_AT = datetime(2027, 1, 1, 9, tzinfo=UTC)
FAILED = Failed(attempt=2, kind="transport", error="refused ☹", retry_at=RETRY_AT, actor="worker-1")


@pytest.fixture
def renamed() -> Generator[type[Event]]:
    """An event whose second version calls a field by another name."""

    class Painted(Event, topic="testing.painted.2"):
        colour: str

    @upcast_from("testing.painted.1", "testing.painted.2")
    def _(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "colour": state["color"]}

    yield Painted
    event_module._classes.pop("testing.painted.2")  # pyright: ignore[reportPrivateUsage]
    event_module._upcasters.pop("testing.painted.1")  # pyright: ignore[reportPrivateUsage]


def test_an_event_goes_out_and_back_under_its_own_topic_as_json() -> None:
    mapper = HorologMapper()
    stored = mapper.to_stored_event(Placed(STREAM, 3, FAILED))

    assert (stored.originator_id, stored.originator_version) == (STREAM, 3)
    assert stored.topic == "occurrence.failed.1"
    assert json.loads(stored.state)["error"] == "refused ☹"
    assert stored.state == FAILED.to_json()
    assert mapper.to_domain_event(stored) == Placed(STREAM, 3, FAILED)


def test_an_old_version_reads_as_the_new_one(renamed: type[Event]) -> None:
    old = StoredEvent(STREAM, 1, "testing.painted.1", b'{"actor": "ann", "color": "red"}')
    placed = HorologMapper().to_domain_event(old)
    assert isinstance(placed, Placed)
    assert placed.event == renamed.model_validate({"actor": "ann", "colour": "red"})


def test_an_id_given_as_text_becomes_a_uuid() -> None:
    stored = StoredEvent(str(STREAM), 3, FAILED.topic, FAILED.to_json())
    assert HorologMapper().to_domain_event(stored) == Placed(STREAM, 3, FAILED)


@pytest.mark.parametrize("compressor", [None, ZlibCompressor(), zlib])
def test_the_librarys_cipher_and_compressors_may_be_used(compressor: Any) -> None:
    key = AESCipher.create_key(16)
    mapper = HorologMapper(
        compressor=compressor, cipher=AESCipher(Environment(env={"CIPHER_KEY": key}))
    )
    stored = mapper.to_stored_event(Placed(STREAM, 3, FAILED))

    assert b"refused" not in stored.state
    assert mapper.to_domain_event(stored) == Placed(STREAM, 3, FAILED)
    with pytest.raises(MapperDeserialisationError, match=rf"{STREAM}:3 \(occurrence\.failed\.1\)"):
        HorologMapper(compressor=ZlibCompressor()).to_domain_event(stored)


@pytest.mark.parametrize(
    ("topic", "state"), [("job.exploded.7", b"{}"), ("occurrence.failed.1", b'{"attempt": "x"}')]
)
def test_what_cannot_be_read_is_named(topic: str, state: bytes) -> None:
    with pytest.raises(MapperDeserialisationError, match=f"{STREAM}:3"):
        HorologMapper().to_domain_event(StoredEvent(STREAM, 3, topic, state))


def test_only_placed_events_are_taken() -> None:
    with pytest.raises(TypeError, match=r"put Placed\(originator_id, originator_version, event\)"):
        HorologMapper().to_stored_event(FAILED)  # pyright: ignore[reportArgumentType]
