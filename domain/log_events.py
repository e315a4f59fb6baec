"""What is said beside the streams of jobs and runs: an event that projections pass over,
occurrences that left the log, deadlines that were missed.

What is said about the log itself has a stream of its own (:func:`horolog.domain.ids.log_stream`),
which stays for ever, so that whoever reads the log from its beginning finds there why something is
missing in it. A missed deadline has one too (:func:`horolog.domain.ids.deadline_stream`): it is
said once, and moves neither the job nor the run to another version, on which others may be
deciding.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from horolog.domain.event import Event

DeadlineKind = Literal["start", "finish", "success"]


class LogEvent(Event):
    """Any of the events below."""


class EventSkipped(LogEvent, topic="log.event_skipped.1"):
    """The actor let projections pass over the event at ``position``, which could not be applied.

    ``error`` is why it could not.
    """

    position: int
    stream: UUID
    version: int
    skipped_topic: str
    error: str


class ScheduleMoved(BaseModel):
    """A part of the event below: what the pruned claims of one job had come to.

    The last of them, at ``position`` and ``recorded_at``, moved the job on to ``next_fire``, the
    ``fires``-th used up; ``append_position`` is the last position of the append that it was in.
    """

    model_config = ConfigDict(frozen=True)

    position: int
    append_position: int
    recorded_at: datetime
    job_id: UUID
    fires: int
    next_fire: datetime | None = None


class OccurrencesPruned(LogEvent, topic="log.occurrences_pruned.1"):
    """Finished occurrences whose fire times lie from ``since`` to before ``until`` left the log.

    What jobs had ordered in that range before this event has ended, apart from ``kept``: what was
    unresolved stays. ``moves`` say where schedules stand without the claims that left, so that a
    rebuild fires nothing again. A long account takes several events of one correlation; all but the
    last say that there is ``more``, and without the last nothing was pruned. The last has the
    counts, the archive if there is one, and ``links_sha256``, over what is left of the links of the
    hash chain.
    """

    since: datetime
    until: datetime
    occurrences: int = 0
    events: int = 0
    executions: int = 0
    archive: str | None = None
    archive_sha256: str | None = None
    links_sha256: str | None = None
    kept: list[UUID] = Field(default_factory=list[UUID])
    moves: list[ScheduleMoved] = Field(default_factory=list[ScheduleMoved])
    more: bool = False


class DeadlineMissed(LogEvent, topic="deadline.missed.1"):
    """A run had not begun or not ended by ``due``, or its job had no success since too long.

    What it was late for may happen all the same; this only says that it was late.
    """

    deadline: DeadlineKind
    job_id: UUID
    name: str
    due: datetime
    occurrence_id: UUID | None = None
    owner: str | None = None
