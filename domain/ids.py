"""The identities of streams: computed where a repetition must collide, and ordered by time.

An occurrence's id is a UUIDv8 (RFC 9562, section 5.8): 48 bits of its fire time in milliseconds,
then a hash of (job, fire time, kind). Every delivery of one firing computes the same id and no two
firings share one, so it is the idempotency key; its leading bits keep inserts at the right edge of
the log's primary key and let retention drop whole ranges of time.
"""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Literal
from uuid import UUID

OccurrenceKind = Literal["schedule", "trigger", "backfill"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_MS = (1 << 48) - 1
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


def occurrence_id(
    job_id: UUID, fire_time: datetime, kind: OccurrenceKind = "schedule", salt: str = ""
) -> UUID:
    """The id of one firing; the same arguments give the same id, in any process, for ever.

    ``salt`` tells extra runs of one instant apart (the request id of a trigger). Fire times before
    1970 or after the year 10889 do not fit into 48 bits of milliseconds and raise ``ValueError``.
    """
    return UUID(int=_occurrence(job_id.bytes, fire_time, kind, salt))


def occurrence_key(job: bytes, fire_time: datetime) -> bytes:
    """The bytes of the id of a schedule's occurrence, for who compares a great many of them."""
    return _occurrence(job, fire_time, "schedule", "").to_bytes(16)


def _occurrence(job: bytes, fire_time: datetime, kind: OccurrenceKind, salt: str) -> int:
    microseconds = (fire_time - EPOCH) // _MICROSECOND
    seed = b"%b%d%b%b" % (job, microseconds, kind.encode(), salt.encode())
    return _bits8(microseconds // 1000, seed)


def keyed_job_id(namespace: str, key: str) -> UUID:
    """The id of the job registered under ``key``: registering twice meets the first job."""
    digest = blake2b(f"{namespace}\0{key}".encode(), digest_size=16, person=b"horolog-job").digest()
    return _versioned(int.from_bytes(digest))


def drawn_job_id(now: datetime, entropy: bytes) -> UUID:
    """The id of a job without a key, from the time and at least 10 random bytes."""
    return UUID(int=_bits8((now - EPOCH) // timedelta(milliseconds=1), entropy))


def partition_stream(namespace: str, partition: int) -> UUID:
    """The stream of a partition's elections."""
    seed = f"{namespace}\0{partition}".encode()
    digest = blake2b(seed, digest_size=16, person=b"horolog-part").digest()
    return _versioned(int.from_bytes(digest))


def log_stream(namespace: str) -> UUID:
    """The stream of what is said about the log itself."""
    digest = blake2b(namespace.encode(), digest_size=16, person=b"horolog-log").digest()
    return _versioned(int.from_bytes(digest))


def subject_stream(namespace: str, subject: str) -> UUID:
    """The stream that says that a subject was forgotten: once for each."""
    digest = blake2b(f"{namespace}\0{subject}".encode(), digest_size=16, person=b"horolog-subject")
    return _versioned(int.from_bytes(digest.digest()))


def deadline_stream(late: UUID, deadline: str, due: datetime) -> UUID:
    """The stream that says that a run, or a job, has missed a deadline: once for each."""
    seed = late.bytes + f"{deadline}\0{(due - EPOCH) // timedelta(microseconds=1)}".encode()
    digest = blake2b(seed, digest_size=16, person=b"horolog-late").digest()
    return _versioned(int.from_bytes(digest))


def alert_stream(namespace: str, owner: str | None, condition: str) -> UUID:
    """The stream of one condition of one owner's work; ``None`` is work without an owner."""
    return _of_owner(namespace, owner, condition, b"horolog-alert")


def alert_rule_stream(namespace: str, owner: str | None) -> UUID:
    """The stream of an owner's rule of alerts; ``None`` is everybody's."""
    return _of_owner(namespace, owner, "", b"horolog-rule")


def _of_owner(namespace: str, owner: str | None, what: str, person: bytes) -> UUID:
    seed = "\0".join([namespace, what, "" if owner is None else f"={owner}"])
    return _versioned(
        int.from_bytes(blake2b(seed.encode(), digest_size=16, person=person).digest())
    )


def partition_of(identity: str, partitions: int) -> int:
    """The partition of a job, from its concurrency key or its id."""
    digest = blake2b(identity.encode(), digest_size=8, person=b"horolog-slice").digest()
    return int.from_bytes(digest) % partitions


def log_of(identity: str, partitions: int, logs: int) -> int:
    """The log of a job, among ``logs`` that have ``partitions`` each; from the same hash.

    It counts the partitions of all logs through; what is left of that number within its log is
    :func:`partition_of`, whatever the number of logs.
    """
    return partition_of(identity, partitions * logs) // partitions


def fire_time_floor(moment: datetime) -> UUID:
    """The smallest occurrence id whose fire time is ``moment`` or later, to the millisecond."""
    return UUID(int=_clamped_ms(moment) << 80)


def fire_millisecond(identity: UUID) -> datetime:
    """The millisecond of the fire time that an occurrence's id begins with; the last there is, of
    an id that is none of ours."""
    return EPOCH + timedelta(milliseconds=min(identity.int >> 80, _LAST_MS))


def fraction(identity: UUID, purpose: str) -> float:
    """A number in [0, 1) that is random across identities and always the same for one of them."""
    digest = blake2b(identity.bytes + purpose.encode(), digest_size=7).digest()
    return (int.from_bytes(digest) >> 3) / (1 << 53)


def _clamped_ms(moment: datetime) -> int:
    return min(max((moment - EPOCH) // timedelta(milliseconds=1), 0), _MAX_MS)


def _bits8(milliseconds: int, seed: bytes) -> int:
    if not 0 <= milliseconds <= _MAX_MS:
        moment = f"{milliseconds} ms after 1970-01-01"
        raise ValueError(f"the time {moment} does not fit an id: it holds 1970 to 10889")
    digest = blake2b(seed, digest_size=10, person=b"horolog-id").digest()
    return _stamped(milliseconds << 80 | int.from_bytes(digest))


_FREE_BITS = (1 << 128) - 1 & ~(0xF000 << 64 | 0xC000 << 48)
_VERSION_AND_VARIANT = 0x8000 << 64 | 0x8000 << 48


def _versioned(value: int) -> UUID:
    return UUID(int=_stamped(value))


def _stamped(value: int) -> int:
    """The bits with version 8 and the RFC 9562 variant set."""
    return value & _FREE_BITS | _VERSION_AND_VARIANT
