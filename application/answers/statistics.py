"""Figures of the runs of one group in one stretch of time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Values at or below which half, 95 and 99 of 100 lie, in seconds; ``None`` of no value."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The finished occurrences of a group whose fire times lie in a bucket.

    The bucket goes from ``bucket`` to before ``until``. ``group`` is a job's id, a handler's name
    or "", ``job_id`` and ``name`` what it stands for. ``runs`` counts occurrences that were
    attempted, ``succeeded``, ``dead``, ``skipped`` and ``discarded`` how all ended, ``failures``
    attempts that failed. ``duration_s`` is of last attempts, ``late_s`` from when a run was meant
    to begin to when it did.
    """

    bucket: datetime
    until: datetime
    group: str
    job_id: UUID | None
    name: str
    runs: int
    succeeded: int
    dead: int
    skipped: int
    discarded: int
    failures: int
    duration_s: Quantiles
    late_s: Quantiles

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
