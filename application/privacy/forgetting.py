"""Forgetting a subject: its key is destroyed, and whatever was still to run of it is cancelled.

    forget ─▶ subject.forgotten + the key destroyed   (one transaction; from here on nothing opens)
           ─▶ its jobs cancelled, its runs skipped or asked to stop, its dead letters discarded

The second part may be cut off at any moment: a job that is still active then fires, its worker
finds the data erased and ends the run as cancelled. Forgetting again does what is left. No job of
the subject can be registered after the first part: that is checked in the transaction that would.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.application.commands.changing import cancel
from horolog.application.commands.context import Context
from horolog.application.commands.dead_letters import discard
from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.log import ReadsLog
from horolog.application.privacy.payloads import checked_subject
from horolog.application.queries.ports import (
    JobFilter,
    ListsJobs,
    ListsOccurrences,
    OccurrenceFilter,
)
from horolog.domain.errors import InvalidPolicy, NotAllowed, UnknownOccurrence
from horolog.domain.ids import subject_stream
from horolog.domain.job import JobState
from horolog.domain.subject_events import Forgotten

PAGE = 500


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What forgetting a subject came to.

    ``forgotten_at`` is when its key was destroyed, ``already`` whether that was before this call;
    the counts are of this call.
    """

    subject: str
    forgotten_at: datetime
    already: bool
    jobs_cancelled: int
    dead_letters_discarded: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)


def forget(
    context: Context,
    log: ReadsLog,
    jobs: ListsJobs,
    occurrences: ListsOccurrences,
    subject: str,
    *,
    reason: str | None = None,
) -> Forgetting:
    """Forgets the subject; again, it does what is left. Raises ``InvalidPolicy``."""
    checked = checked_subject(subject)
    if checked is None:
        raise InvalidPolicy("subject=None: say who is to be forgotten")
    stream = subject_stream(context.namespace, checked)
    origin = context.origin(reason)
    event = Forgotten(subject=checked, **origin.fields())
    guard, events = Guard("nothing", stream, 0), [NewEvent(stream, 1, event)]
    decision = Decision(guard, 0, events, forgotten=(checked,))
    already = context.accepts(decision) is None
    context.keyring.drop()
    said = log.stream(stream, limit=1)[0]
    why = f"its subject was forgotten: {reason}" if reason else "its subject was forgotten"
    cancelled = discarded = 0
    for job in _jobs(jobs, checked):
        cancelled += job.status != "cancelled"
        cancel(context, job.id, reason=why)
        discarded += _discard_dead(context, occurrences, job.id, why)
    return Forgetting(checked, said.recorded_at, already, cancelled, discarded)


def _jobs(jobs: ListsJobs, subject: str) -> Iterator[JobState]:
    last: UUID | None = None
    while page := jobs.jobs(JobFilter(subject=subject), after=last, limit=PAGE):
        yield from page
        last = page[-1].id


def _discard_dead(
    context: Context, occurrences: ListsOccurrences, job_id: UUID, reason: str
) -> int:
    wanted = OccurrenceFilter(job_id=job_id, state="dead")
    discarded, last = 0, None
    while page := occurrences.occurrences(wanted, after=last, limit=PAGE):
        for occurrence in page:
            try:
                discard(context, occurrence.id, reason=reason)
                discarded += 1
            except (NotAllowed, UnknownOccurrence):
                continue  # somebody else has discarded it, or retention took it, meanwhile
        last = page[-1].id
    return discarded
