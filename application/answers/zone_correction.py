"""A job whose next fire time new zone data moves."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.schedule import FireTime


@dataclass(frozen=True, slots=True)
class ZoneCorrection:
    """``recorded`` is the next fire time as it was computed, with the zone data ``recorded_with``
    where the log says so; ``fires`` are the next ones by the present zone data, the first of which
    takes its place."""

    job_id: UUID
    key: str | None
    name: str
    zone: str
    recorded: datetime
    recorded_with: str | None
    fires: tuple[FireTime, ...]

    @property
    def corrected(self) -> datetime | None:
        """``None`` where the schedule has nothing left."""
        return self.fires[0].at if self.fires else None

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self) | {"corrected": plain(self.corrected)}
