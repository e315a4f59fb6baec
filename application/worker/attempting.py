"""Attempting: a ready run becomes a decision to append Attempted, and so an attempt of ours.

The message is trusted for nothing but naming the claim: the decision rests on the index row at the
claim's version, so a stale copy, a second delivery or an invented run is refused by the log.
"""

from functools import lru_cache

from horolog.application.decision import Decision, decide_on_occurrence
from horolog.application.ready import ReadyRun
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence_events import Attempted


@lru_cache(maxsize=256)
def _attempted(attempt: int, actor: str, lease_s: float) -> Attempted:
    """Attempts of one worker differ in their number only, and events are immutable."""
    return Attempted(attempt=attempt, lease=lease_s, actor=actor)


def attempt_of(ready: ReadyRun, actor: str, lease_s: float) -> tuple[Decision, OccurrenceState]:
    """The decision that begins the run, and the occurrence's state once it is accepted."""
    event = _attempted(ready.attempt, actor, lease_s)
    return decide_on_occurrence(ready.claimed(), [event], name=ready.name)
