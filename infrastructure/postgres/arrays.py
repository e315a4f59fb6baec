"""Columns of a batch as Postgres arrays in the binary format, built in one pass each.

A batch goes to the server as parallel arrays that ``unnest`` turns into rows. Packing them here
fixes their types (a list of small numbers would otherwise be sent as ``smallint[]``) and costs a
fraction of dumping each element for itself. Format: the array_send function of Postgres: number of
dimensions, null flag, element type, length, lower bound, then length and bytes of each element.

Most columns of a batch hold few different values (topics, states, one fire time for all): each is
encoded once. What differs from row to row goes through the cheapest loop that there is for it.
"""

import sys
from array import array
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from struct import pack
from typing import ClassVar, TypeVar
from uuid import UUID

from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NULL = b"\xff\xff\xff\xff"
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

V = TypeVar("V", bound=Hashable)


class PackedArray:
    """An array ready to be sent; the subclasses say of which element type."""

    __slots__ = ("data",)
    element_oid: ClassVar[int]
    array_oid: ClassVar[int]

    def __init__(self, elements: bytes, length: int) -> None:
        head = pack("!iiIii", 1, 1, self.element_oid, length, 1)
        self.data = head + elements if length else pack("!iiI", 0, 0, self.element_oid)


class SmallInts(PackedArray):
    element_oid, array_oid = 21, 1005

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__(_each(values, lambda value: pack("!ih", 2, value)), len(values))


class Ints(PackedArray):
    element_oid, array_oid = 23, 1007

    def __init__(self, values: Sequence[int]) -> None:
        # Lengths and values alternate, all of them four bytes wide.
        words = array("i", (4,)) * (2 * len(values))
        words[1::2] = array("i", values)
        if sys.byteorder == "little":
            words.byteswap()
        super().__init__(words.tobytes(), len(values))


class BigInts(PackedArray):
    element_oid, array_oid = 20, 1016

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__(b"".join([pack("!iq", 8, value) for value in values]), len(values))


class Floats(PackedArray):
    element_oid, array_oid = 701, 1022

    def __init__(self, values: Sequence[float | None]) -> None:
        super().__init__(_each(values, _float), len(values))


class Booleans(PackedArray):
    element_oid, array_oid = 16, 1000

    def __init__(self, values: Sequence[bool]) -> None:
        super().__init__(_each(values, lambda value: pack("!i?", 1, value)), len(values))


class Uuids(PackedArray):
    element_oid, array_oid = 2950, 2951

    def __init__(self, values: Sequence[UUID]) -> None:
        # The length before each is the number above its 128 bits.
        packed = [(_UUID_LENGTH | value.int).to_bytes(20) for value in values]
        super().__init__(b"".join(packed), len(values))


class Texts(PackedArray):
    element_oid, array_oid = 25, 1009

    def __init__(self, values: Sequence[str | None]) -> None:
        super().__init__(_each(values, _text), len(values))


class Bytes(PackedArray):
    element_oid, array_oid = 17, 1001

    def __init__(self, values: Sequence[bytes]) -> None:
        sized = [len(value).to_bytes(4) + value for value in values]
        super().__init__(b"".join(sized), len(values))


class Instants(PackedArray):
    element_oid, array_oid = 1184, 1185

    def __init__(self, values: Sequence[datetime | None]) -> None:
        super().__init__(_each(values, _instant), len(values))


_UUID_LENGTH = 16 << 128


def _each(values: Sequence[V], encoded: Callable[[V], bytes]) -> bytes:
    """All elements, each different value encoded once."""
    known = {value: encoded(value) for value in set(values)}
    if len(known) == 1:
        return known.popitem()[1] * len(values)
    return b"".join([known[value] for value in values])


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.encode()
    return len(encoded).to_bytes(4) + encoded


def _float(value: float | None) -> bytes:
    return _NULL if value is None else pack("!id", 8, value)


def _instant(value: datetime | None) -> bytes:
    if value is None:
        return _NULL
    return pack("!iq", 8, (value - _POSTGRES_EPOCH) // _MICROSECOND)


def _dumper_of(kind: type[PackedArray]) -> type[Dumper]:
    class PackedArrayDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: PackedArray) -> bytes:
            return obj.data

    return PackedArrayDumper


for _kind in (SmallInts, Ints, BigInts, Floats, Booleans, Uuids, Texts, Bytes, Instants):
    adapters.register_dumper(_kind, _dumper_of(_kind))
