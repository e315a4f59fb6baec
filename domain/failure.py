"""What kind of failure it was: the one question that decides between trying again and giving up.

A timeout or a refused connection is a blip; a malformed payload or a revoked permission fails the
same way every time, and would only burn the retry budget before anybody is told.
"""

from typing import Literal, get_args

FailureKind = Literal[
    "transport",  # the way to the downstream failed: timed out, refused, reset, overloaded
    "argument",  # what was asked for cannot work: invalid, not found, forbidden
    "timeout",  # the handler did not end within the job's timeout
    "crashed",  # the handler's own process died under it
    "lost",  # the worker was not heard of again: nobody knows whether the effect happened
    "permanent",  # the handler said so
    "retryable",  # the handler said so
    "unknown",  # anything else that was raised
]
FAILURE_KINDS: tuple[str, ...] = get_args(FailureKind)

_HOPELESS: frozenset[FailureKind] = frozenset({"argument", "permanent"})


def is_worth_repeating(kind: FailureKind) -> bool:
    """Whether another attempt may end differently; what is unknown is given the chance."""
    return kind not in _HOPELESS
