"""What every command needs: the log, the states, the time, randomness, and who is asking.

The time is the database's: a client whose clock is wrong must not register jobs that are due in
another hour than it says.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from horolog.application.decision import Decision
from horolog.application.log import Appended, AppendsToLog
from horolog.application.privacy.ports import Keyring, NoKeyring
from horolog.application.states import ReadsStates
from horolog.domain.errors import VersionConflict
from horolog.domain.ids import partition_of
from horolog.domain.origin import Origin
from horolog.domain.text import stated

MAX_TRIES = 20
"""How often a command is decided anew before it gives up to others who are always faster."""


class Clock(Protocol):
    """The one time that decisions are made by. Errors: ``StoreUnavailable``."""

    def now(self) -> datetime:
        """The present, aware, in UTC."""
        ...


class Entropy(Protocol):
    """Where randomness comes from; a simulation seeds it."""

    def draw(self, size: int) -> bytes: ...


def _untraced() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Context:
    """The surroundings of the commands of one client; ``partitions`` is the namespace's number.

    ``correlation`` is that of a command which was given earlier, in the inbox. ``traceparent`` is
    the client's present span. ``settle`` has what the inbox holds of a job carried out; whether
    that was anything.
    ``keyring`` has the keys of subjects; without one, data of a subject is refused.
    """

    log: AppendsToLog
    states: ReadsStates
    clock: Clock
    entropy: Entropy
    namespace: str
    partitions: int
    actor: str
    correlation: UUID | None = None
    traceparent: Callable[[], str | None] = _untraced
    settle: Callable[[UUID], bool] | None = None
    keyring: Keyring = field(default_factory=NoKeyring)

    def origin(self, reason: str | None) -> Origin:
        """Who asks, why, and a correlation that joins the events of this one command."""
        correlation = self.correlation or UUID(bytes=self.entropy.draw(16), version=4)
        said = stated(reason)
        return Origin(self.actor, said, correlation, traceparent=self.traceparent())

    def partition(self, job_id: UUID, concurrency_key: str | None) -> int:
        """Jobs that share a concurrency key share a partition: one leader sees them all."""
        identity = str(job_id) if concurrency_key is None else concurrency_key
        return partition_of(identity, self.partitions)

    def accepts(self, decision: Decision) -> Appended | None:
        """Appends one decision; ``None`` where what it rests on is no longer so."""
        appended = self.append_all([decision])
        return appended if appended is not None and appended.verdicts == ["accepted"] else None

    def append_all(self, decisions: Sequence[Decision]) -> Appended | None:
        """Appends decisions; ``None`` where the whole batch met an event that is in its place.

        That happens to decisions that write into streams which their guard does not cover.
        """
        try:
            return self.log.append(decisions)
        except VersionConflict:
            return None


def too_busy(what: str) -> VersionConflict:
    """Raised after ``MAX_TRIES``: somebody changes it without end."""
    return VersionConflict(
        f"{what} was changed by others {MAX_TRIES} times while this command was decided:"
        " try again, or find out who changes it"
    )
