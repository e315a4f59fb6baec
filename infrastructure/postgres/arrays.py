"""Columns of a batch as Postgres arrays in the binary format, built in one pass each.

A batch goes to the server as parallel arrays that ``unnest`` turns into rows. Packing them here
fixes their types (a list of small numbers would otherwise be sent as ``smallint[]``) and costs a
fraction of dumping each element for itself. Format: the array_send function of Postgres: number of
dimensions, null flag, element type, length, lower bound, then length and bytes of each element.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from struct import pack
from typing import ClassVar
from uuid import UUID

from psycopg import adapters
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NULL = b"\xff\xff\xff\xff"
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class PackedArray:
    """An array ready to be sent; the subclasses say of which element type."""

    __slots__ = ("data",)
    element_oid: ClassVar[int]
    array_oid: ClassVar[int]

    def __init__(self, elements: Iterable[bytes], length: int) -> None:
        head = pack("!iiIii", 1, 1, self.element_oid, length, 1)
        self.data = (head if length else pack("!iiI", 0, 0, self.element_oid)) + b"".join(elements)


class SmallInts(PackedArray):
    element_oid, array_oid = 21, 1005

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__((pack("!ih", 2, value) for value in values), len(values))


class Ints(PackedArray):
    element_oid, array_oid = 23, 1007

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__((pack("!ii", 4, value) for value in values), len(values))


class BigInts(PackedArray):
    element_oid, array_oid = 20, 1016

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__((pack("!iq", 8, value) for value in values), len(values))


class Floats(PackedArray):
    element_oid, array_oid = 701, 1022

    def __init__(self, values: Sequence[float | None]) -> None:
        packed = (_NULL if value is None else pack("!id", 8, value) for value in values)
        super().__init__(packed, len(values))


class Booleans(PackedArray):
    element_oid, array_oid = 16, 1000

    def __init__(self, values: Sequence[bool]) -> None:
        packed = (b"\0\0\0\1\1" if value else b"\0\0\0\1\0" for value in values)
        super().__init__(packed, len(values))


class Uuids(PackedArray):
    element_oid, array_oid = 2950, 2951

    def __init__(self, values: Sequence[UUID]) -> None:
        super().__init__((b"\0\0\0\x10" + value.bytes for value in values), len(values))


class Texts(PackedArray):
    element_oid, array_oid = 25, 1009

    def __init__(self, values: Sequence[str | None]) -> None:
        super().__init__((_sized(None if v is None else v.encode()) for v in values), len(values))


class Bytes(PackedArray):
    element_oid, array_oid = 17, 1001

    def __init__(self, values: Sequence[bytes]) -> None:
        super().__init__((_sized(value) for value in values), len(values))


class Instants(PackedArray):
    element_oid, array_oid = 1184, 1185

    def __init__(self, values: Sequence[datetime | None]) -> None:
        packed = (
            _NULL if value is None else pack("!iq", 8, (value - _POSTGRES_EPOCH) // _MICROSECOND)
            for value in values
        )
        super().__init__(packed, len(values))


def _sized(value: bytes | None) -> bytes:
    return _NULL if value is None else len(value).to_bytes(4) + value


def _dumper_of(kind: type[PackedArray]) -> type[Dumper]:
    class PackedArrayDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: PackedArray) -> bytes:
            return obj.data

    return PackedArrayDumper


for _kind in (SmallInts, Ints, BigInts, Floats, Booleans, Uuids, Texts, Bytes, Instants):
    adapters.register_dumper(_kind, _dumper_of(_kind))
