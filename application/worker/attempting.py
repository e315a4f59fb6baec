"""Attempting: a ready run becomes a decision to append Attempted, and so an attempt of ours.

The message is trusted for nothing but naming the claim: the decision rests on the index row at the
claim's version, so a stale copy, a second delivery or an invented run is refused by the log.
"""

from horolog.application.decision import Decision, decide_on_occurrence
from horolog.application.ready import ReadyRun
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.occurrence_events import Attempted


def attempt_of(
    ready: ReadyRun, actor: str, lease_s: float, serial: int | None = None
) -> tuple[Decision, OccurrenceState]:
    """The decision that begins the run, and the occurrence's state once it is accepted.

    No two decisions of one actor may have the same ``serial``.
    """
    event = Attempted(attempt=ready.attempt, lease=lease_s, serial=serial, actor=actor)
    return decide_on_occurrence(ready.claimed(), [event], name=ready.name)
