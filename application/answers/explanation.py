"""Why an occurrence is what it is: its causes and its life, step by step, in plain words."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.occurrence import Phase


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happened at ``at`` (UTC), ``after_s`` seconds after the step before.

    ``event`` is the event that says so, as ``stream:version``, and ``position`` its place in the
    log; both are ``None`` for what only follows from the events (a fire time that came).
    """

    at: datetime
    what: str
    after_s: float | None = None
    actor: str | None = None
    event: str | None = None
    position: int | None = None

    def __str__(self) -> str:
        since = "" if self.after_s is None else f"{self.after_s:+.3f} s"
        return f"{self.at.isoformat(timespec='milliseconds')}  {since:>12}  {self.what}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causal story of an occurrence, oldest step first; ``str()`` gives it as text.

    ``outlook`` says what an unfinished one waits for; it is empty for a finished one. ``seconds``
    is the time from its fire time to its last event, ``None`` before its first event.
    """

    occurrence_id: UUID
    job_id: UUID
    name: str
    state: Phase
    steps: tuple[Step, ...]
    outlook: str = ""
    seconds: float | None = None
    archive: str | None = None
    """The file of the archive that its own events were read from; ``None`` for the log."""

    def __str__(self) -> str:
        head = f"occurrence {self.occurrence_id} of {self.name} is {self.state}"
        if self.archive is not None:
            head += f" (from the archive {self.archive})"
        tail = [self.outlook] if self.outlook else []
        return "\n".join([head, *(str(step) for step in self.steps), *tail])

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
