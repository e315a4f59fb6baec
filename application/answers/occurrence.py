"""An occurrence, as a client sees it: one firing of a job, and what has become of it."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.ids import OccurrenceKind
from horolog.domain.occurrence import OccurrenceState, Phase


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One firing of a job.

    ``state`` is "scheduled" (ordered, not claimed yet), "claimed", "running", "stopping" (it runs,
    and was asked to stop), "retrying", "succeeded", "dead", "skipped" or "discarded". ``kind`` says
    what ordered it: "schedule", "trigger" or "backfill". ``attempt`` is the number of the last try,
    0 before the first claim. ``due_at`` is when an unfinished one wants attention again: its start,
    its next try, or the end of a claim's or an attempt's lease. ``since`` is when its last event
    was recorded. ``result`` is what the handler returned, ``error`` what the last failure said,
    ``seconds`` how long the last try took, ``reason`` why it was skipped or dead-lettered;
    ``worker`` who did the last thing: in "running", the worker that runs it.
    """

    id: UUID
    job_id: UUID
    state: Phase
    fire_time: datetime
    attempt: int
    kind: OccurrenceKind
    failures: int
    version: int
    partition: int
    due_at: datetime | None = None
    finished_at: datetime | None = None
    since: datetime | None = None
    worker: str | None = None
    result: Any = None
    error: str | None = None
    seconds: float | None = None
    reason: str | None = None
    jittered_at: datetime | None = None

    @classmethod
    def of(cls, state: OccurrenceState, *, finished_at: datetime | None = None) -> "Occurrence":
        """The answer that a state gives; ``finished_at`` is not in the state."""
        return cls(
            id=state.id,
            job_id=state.job_id,
            state=state.state,
            fire_time=state.fire_time,
            attempt=state.attempt,
            kind=state.kind,
            failures=state.failures,
            version=state.version,
            partition=state.partition,
            due_at=None if state.finished else state.due,
            finished_at=finished_at,
            error=state.error or None,
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)


class LastWords(TypedDict):
    worker: str | None
    result: Any
    error: str | None
    seconds: float | None
    reason: str | None


def last_words(topic: str | None, state: bytes | None) -> LastWords:
    """What an occurrence's last event says of it, as fields of the answer."""
    says: dict[str, Any] = {} if state is None else json.loads(state)
    return LastWords(
        worker=says.get("actor") if topic in _OF_A_WORKER else None,
        result=says.get("result"),
        error=says.get("error"),
        seconds=says.get("seconds"),
        reason=says.get("cause") or says.get("reason"),
    )


def meant_for(first_state: bytes | None) -> datetime | None:
    """When the first claim, if there is one, says that the occurrence was meant to begin."""
    if first_state is None or b'"due"' not in first_state:
        return None
    due = json.loads(first_state).get("due")
    return None if due is None else datetime.fromisoformat(due)


_OF_A_WORKER = frozenset(
    {
        "occurrence.attempted.1",
        "occurrence.succeeded.1",
        "occurrence.failed.1",
        "occurrence.stopped.1",
    }
)
