"""Packed columns are, byte for byte, what encoding each element for itself would give."""

from datetime import UTC, datetime, timedelta
from struct import pack
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format

from horolog.infrastructure.postgres.arrays import (
    BigInts,
    Booleans,
    Bytes,
    Floats,
    Instants,
    Ints,
    PackedArray,
    SmallInts,
    Texts,
    Uuids,
)


def _ints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


_UTC_INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_COLUMNS: list[tuple[type[PackedArray], st.SearchStrategy[Any]]] = [
    (SmallInts, _ints(16)),
    (Ints, _ints(32)),
    (BigInts, _ints(64)),
    (Floats, st.floats(0) | st.none()),
    (Booleans, st.booleans()),
    (Uuids, st.uuids()),
    (Texts, st.text(st.characters(exclude_categories=["Cs"])) | st.none()),
    (Bytes, st.binary()),
    (Instants, _UTC_INSTANTS | st.none()),
]


def _plain(kind: type[PackedArray], value: Any) -> bytes:
    """One element, by itself."""
    if value is None:
        return pack("!i", -1)
    match value:
        case bool():
            data = pack("!?", value)
        case int():
            data = value.to_bytes({21: 2, 23: 4, 20: 8}[kind.element_oid], signed=True)
        case float():
            data = pack("!d", value)
        case UUID():
            data = value.bytes
        case str():
            data = value.encode()
        case datetime():
            since = value - datetime(2000, 1, 1, tzinfo=UTC)
            data = pack("!q", since // timedelta(microseconds=1))
        case _:
            data = value
    return pack("!i", len(data)) + data


@settings(max_examples=30)
@given(st.data())
def test_a_column_is_what_its_elements_are(data: st.DataObject) -> None:
    for kind, elements in _COLUMNS:
        values: list[Any] = data.draw(st.lists(elements, max_size=6))
        values += values[:2]  # repeated ones are encoded once
        head = pack("!iiIii", 1, 1, kind.element_oid, len(values), 1)
        column: Any = kind
        packed = column(values).data
        if values:
            assert packed == head + b"".join(_plain(kind, value) for value in values)
        else:
            assert packed == pack("!iiI", 0, 0, kind.element_oid)
        loader = Transformer().get_loader(kind.array_oid, Format.BINARY)
        assert loader.load(packed) == values
