"""What can happen to a job. Its stream holds every change of its definition and of its status.

A job's fires are not in its own stream but in the occurrences' (``occurrence.claimed``), so that a
job which runs every second does not grow a stream without end; only what a policy drops is here, as
one event for a whole range.
"""

from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from horolog.domain.definition import JobDefinition
from horolog.domain.event import Event

SkipCause = Literal[
    "misfire",  # an outage, and the catch-up policy does not run it
    "superseded",  # a later one runs in its place
    "overlap",  # an earlier run was not finished
    "paused",
    "cancelled",
    "calendar",  # excluded, or on a holiday
    "gap",  # its local time did not exist
]


class JobEvent(Event):
    """Any of the events below."""


class Registered(JobEvent, topic="job.registered.1"):
    """A job exists from now on; ``next_fire`` was computed with the zone data ``tzdata``."""

    definition: JobDefinition
    partition: int
    key: str | None = None
    next_fire: datetime | None = None
    tzdata: str = ""


class Rescheduled(JobEvent, topic="job.rescheduled.1"):
    """Another schedule from now on; the run count that ``limit`` looks at starts again."""

    schedule: dict[str, Any]
    next_fire: datetime | None = None
    tzdata: str = ""


class PayloadChanged(JobEvent, topic="job.payload_changed.1"):
    payload: dict[str, Any]


class PoliciesChanged(JobEvent, topic="job.policies_changed.1"):
    """New values for the named fields of the definition (never schedule, payload or name)."""

    changes: dict[str, Any]


class Paused(JobEvent, topic="job.paused.1"):
    """No fire time of the schedule is claimed until the job is resumed."""


class Resumed(JobEvent, topic="job.resumed.1"):
    """The schedule goes on at ``next_fire``; the fire times of the pause do not run."""

    next_fire: datetime | None = None
    tzdata: str = ""


class Triggered(JobEvent, topic="job.triggered.1"):
    """One extra run, at ``fire_time``, beside the schedule."""

    occurrence_id: UUID
    fire_time: datetime
    request_id: str | None = None


class BackfillRequested(JobEvent, topic="job.backfill_requested.1"):
    """Runs for fire times of a past range, in the order in which they begin; at most 1,000.

    The first is due at ``due``, each next one ``spacing_s`` seconds later. They run the definition
    that the job had at ``definition_version``, or the one that it has at the claim where that is
    absent. ``salt`` tells runs of what has run before from those: it is empty for fire times that
    had no occurrence, whose runs have the schedule's own keys.
    """

    start: datetime
    end: datetime
    fires: list[datetime]
    due: datetime | None = None
    spacing_s: float = 0.0
    definition_version: int | None = None
    salt: str = ""
    request_id: str | None = None
    tzdata: str = ""


class FiresSkipped(JobEvent, topic="job.fires_skipped.1"):
    """Fire times that a policy dropped: ``count`` of them, from ``first`` to ``last`` inclusive.

    ``fires`` is how many the schedule has used up by then. A range too long to be walked has no
    count, and ``last`` is the instant up to which it goes.
    """

    first: datetime
    last: datetime
    count: int | None = None
    cause: SkipCause
    next_fire: datetime | None = None
    fires: int = 0
    tzdata: str = ""


class ZoneDataChanged(JobEvent, topic="job.zone_data_changed.1"):
    """The rules of a zone were changed, and with them the next fire time: to ``next_fire``.

    What was computed before, with other zone data, stays what it was.
    """

    next_fire: datetime | None = None
    tzdata: str = ""


class Cancelled(JobEvent, topic="job.cancelled.1"):
    """The job never fires again; what had not started does not run."""


class Completed(JobEvent, topic="job.completed.1"):
    """The schedule has no fire time left. (Its last occurrence may still be running.)"""


DEFINING: Final[tuple[type[JobEvent], ...]] = (
    Registered,
    Rescheduled,
    PayloadChanged,
    PoliciesChanged,
)
"""The events that say what a job is; folded alone, they give its definition."""
