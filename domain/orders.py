"""What an event of a job orders: runs beside the schedule, which wait in the index for their claim.

An ordered run has no event of its own before its claim. Who folds the log alone (a rebuild, a copy)
finds it in the event that ordered it, here, as the command that appended the event did.
"""

from datetime import datetime, timedelta
from uuid import UUID

from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import BackfillRequested, JobEvent, Triggered
from horolog.domain.occurrence import OccurrenceState, ordered


def ordered_by(job: JobState, event: JobEvent, recorded_at: datetime) -> list[OccurrenceState]:
    """The occurrences that ``event``, appended at ``recorded_at``, orders; most order none."""
    match event:
        case Triggered():
            at = event.fire_time
            return [ordered(event.occurrence_id, job.id, job.partition, at, "trigger")]
        case BackfillRequested():
            first = event.due or recorded_at
            return [
                ordered(
                    backfilled_id(job.id, fire, event.salt),
                    job.id,
                    job.partition,
                    fire,
                    "backfill",
                    due=first + number * timedelta(seconds=event.spacing_s),
                    definition_version=event.definition_version,
                )
                for number, fire in enumerate(event.fires)
            ]
        case _:
            return []


def backfilled_id(job_id: UUID, fire: datetime, salt: str = "") -> UUID:
    """The id of a backfilled run: the schedule's own, or with a salt that of another run."""
    return occurrence_id(job_id, fire, "backfill", salt) if salt else occurrence_id(job_id, fire)
