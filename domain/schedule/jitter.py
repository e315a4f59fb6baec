"""Jitter: spreads runs that are due at one instant, the same way each time it is asked.

The delay is derived from the occurrence's identity, so a redelivery, a restart or another machine
computes the same one. The fire time stays what it was: it is the occurrence's name; the jittered
time is only when it is looked at.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from uuid import UUID

_STEPS = 1 << 53


def jittered(
    schedule_jitter_s: float, identity: UUID, fire: datetime, following: datetime | None
) -> datetime:
    """``fire`` plus a delay in [0, ``schedule_jitter_s``] seconds, always before ``following``.

    ``following`` is the next fire time, ``None`` if there is none. Whole microseconds.
    """
    longest = timedelta(seconds=schedule_jitter_s)
    if following is not None:
        longest = min(longest, max(timedelta(0), following - fire - timedelta(microseconds=1)))
    if not longest:
        return fire
    drawn = int.from_bytes(blake2b(identity.bytes, digest_size=8).digest()) >> 11
    microseconds = longest // timedelta(microseconds=1)
    return fire + timedelta(microseconds=drawn * (microseconds + 1) // _STEPS)
