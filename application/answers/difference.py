"""What it takes to make a declared set of jobs true, or what it took."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a job's definition: its value before and after, as JSON."""

    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class JobChange:
    """A job that is not yet, or was not, what is declared; ``fields`` by their names."""

    key: str
    job_id: UUID
    fields: dict[str, FieldChange]


@dataclass(frozen=True, slots=True)
class Difference:
    """The keys of jobs that are ``created``, ``unchanged`` and ``pruned``, and what is changed.

    In the order in which they were declared; the pruned ones by their ids.
    """

    created: tuple[str, ...] = ()
    changed: tuple[JobChange, ...] = ()
    unchanged: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """The declared set is true already."""
        return not (self.created or self.changed or self.pruned)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
