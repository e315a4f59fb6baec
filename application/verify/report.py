"""What the checker found: counts, and violations that name their events."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from horolog.application.answers.plain import plain

MOST_KEPT = 1_000
"""Violations that are kept in full; all are counted."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """An event, or the place in a stream where one is missing (``position`` is then ``None``)."""

    stream: UUID
    version: int
    position: int | None = None

    def __str__(self) -> str:
        place = "" if self.position is None else f" at position {self.position}"
        return f"{self.stream}:{self.version}{place}"


class Place(NamedTuple):
    """Where an event is, as the checker remembers it: it becomes evidence when something is wrong.

    ``stream`` is the bytes of an id.
    """

    stream: bytes
    version: int
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """``invariant`` is the number of the broken one (1 to 7); ``evidence`` names the events."""

    invariant: int
    message: str
    evidence: tuple[Evidence, ...]

    def __str__(self) -> str:
        named = ", ".join(str(event) for event in self.evidence)
        return f"invariant {self.invariant}: {self.message} ({named})"


@dataclass(slots=True)
class Report:
    """What was counted, and what is wrong. ``position`` is how far the log was read.

    ``retried`` counts failed or lost attempts that were given another try, ``dead`` the occurrences
    that are dead letters now, ``unfinished`` those that something is still to happen to.
    """

    position: int = 0
    events: int = 0
    jobs: int = 0
    occurrences: int = 0
    claims: int = 0
    attempts: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    lost: int = 0
    snoozed: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    dead: int = 0
    replayed: int = 0
    discarded: int = 0
    unfinished: int = 0
    elections: int = 0
    violation_count: int = 0
    violations: list[Violation] = field(default_factory=list[Violation])

    @property
    def ok(self) -> bool:
        return self.violation_count == 0

    def violate(self, invariant: int, message: str, *places: Place) -> None:
        self.violation_count += 1
        if len(self.violations) < MOST_KEPT:
            evidence = (
                Evidence(UUID(bytes=stream), version, position)
                for stream, version, position in places
            )
            self.violations.append(Violation(invariant, message, tuple(evidence)))

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; ``violations`` holds at most ``MOST_KEPT`` of ``violation_count``."""
        return plain(self)
