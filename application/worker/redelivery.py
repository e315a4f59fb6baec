"""Redeliveries: an attempt that the log refused is looked up there, and the log's word is final.

A message is delivered twice whenever a worker died, a lease ran out or a queue forgot: the claim
it stands for is then finished, running or given up, and nothing is left to do for it. Whatever is
unfinished has its row in the next-run index, so letting a message go never loses a run.
"""

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from horolog.application.ready import ReadyRun
from horolog.domain.occurrence import OccurrenceState


class ReadsOccurrence(Protocol):
    """:meth:`horolog.application.states.ReadsStates.occurrence`, awaited.

    Errors: ``StoreUnavailable``, ``UnreadableEvent``.
    """

    async def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None: ...


Finding = Literal["finished", "superseded", "running", "stranger", "ready"]


@dataclass(frozen=True, slots=True)
class Redelivery:
    """What the log says about a refused run.

    ``ready`` means that the log says it may run after all (it was refused for a moment only), so it
    is offered again. Every other finding ends the run's part in this message.
    """

    finding: Finding
    said: str


def recognise(ready: ReadyRun, state: OccurrenceState | None) -> Redelivery:
    """What became of the claim that ``ready`` stands for, given the occurrence as it is."""
    if state is None:
        # Many of them are another log's: both lose runs to each other until their windows pass.
        said = (
            "the log knows no such occurrence (has another database this namespace on this NATS?)"
        )
        return Redelivery("stranger", said)
    if state.finished:
        return Redelivery("finished", f"it is {state.state}")
    if state.attempt < ready.attempt or (
        state.attempt == ready.attempt and state.version < ready.version
    ):
        return Redelivery("stranger", f"the log has not claimed attempt {ready.attempt}")
    if state.attempt > ready.attempt:
        return Redelivery("superseded", f"attempt {state.attempt} was claimed since")
    if state.state in ("running", "stopping"):
        return Redelivery("running", "somebody runs it")
    if state.state == "claimed" and state.version == ready.version:
        return Redelivery("ready", "it may run")
    return Redelivery("superseded", f"it is {state.state} at version {state.version}")
