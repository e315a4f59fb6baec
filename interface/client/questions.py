"""What the log answers beyond the present: who changed what, what ran, what did not, what was.

The part of :class:`horolog.interface.scheduler.Scheduler` that only asks, and asks the log.
"""

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import cast, get_args
from uuid import UUID

from horolog.application.answers.change import Change
from horolog.application.answers.execution import Execution
from horolog.application.answers.explanation import Explanation
from horolog.application.answers.index_entry import IndexEntry
from horolog.application.answers.skip import Skip
from horolog.application.answers.statistics import Statistics
from horolog.application.queries import asking, past_index
from horolog.application.queries.archives import (
    archived_executions,
    archived_explanation,
    merged,
)
from horolog.application.queries.audit_ports import ExecutionChoice, JobChoice, SkipChoice
from horolog.application.queries.changes import changes
from horolog.application.queries.explaining import Explaining
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.application.queries.statistics import Grouping, bucket_of, statistics
from horolog.domain.errors import InvalidSchedule, UnknownOccurrence
from horolog.domain.failure import FailureKind
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job_events import SkipCause
from horolog.domain.occurrence import Phase
from horolog.infrastructure.archive.reading import ArchiveFolder
from horolog.interface.client.connected import Connected
from horolog.interface.filters import (
    chosen_from,
    chosen_label,
    chosen_place,
    chosen_state,
    chosen_text,
    chosen_time,
)
from horolog.interface.identifiers import Identifier, as_uuid, job_uuid, occurrence_uuid
from horolog.interface.wiring import Client

Folder = str | os.PathLike[str]
Label = str | tuple[str, str] | Mapping[str, str]


class Questions(Connected):
    """Asks the log of the namespace that ``_connected`` leads to."""

    def changes(self, job_id: Identifier, *, after: int = 0, limit: int = 1000) -> list[Change]:
        """Who changed a job (id or key), from which value to which, when and why; oldest first.

        ``after`` is the version of the last change of the page before; ``limit`` is from 1 to
        10,000. Raises ``UnknownJob``.
        """
        client = self._connected()
        job = asking.find_job(client.context, job_id, as_uuid(job_id))
        client = client.of_job(job.id)
        page = changes(client.audit, client.past, job.id, after=chosen_place(after), limit=limit)
        return self.read_out(page)

    def explain(self, occurrence_id: Identifier, *, archive: Folder | None = None) -> Explanation:
        """The causal story of an occurrence, from the job's registration to its outcome.

        ``str()`` of the answer is the story as text. ``archive`` is a folder of retention: what has
        left the log is told from there, and says so. Raises ``UnknownOccurrence``.
        """
        client = self._connected()
        identity = occurrence_uuid(occurrence_id)
        client = client.of_occurrence(identity)
        if archive is not None and client.occurrences.occurrence(identity) is None:
            life = ArchiveFolder(Path(archive)).life(identity)
            context = client.context
            if life is None:
                raise UnknownOccurrence(
                    f"no occurrence has the id {identity} in this namespace, nor in the archive"
                    f" {archive}"
                )
            story = archived_explanation(
                life, client.log, client.audit, context.states, context.namespace
            )
            if story is not None:
                return self.read_out(story)
        found = asking.find_occurrence(client.occurrences, identity)
        explaining = Explaining(client.log, client.audit, client.context.namespace)
        return self.read_out(explaining.explain(found))

    def due_at(
        self,
        instant: datetime,
        *,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[IndexEntry]:
        """What the next-run index held at an instant (aware), by the time at which it was due.

        Folded from the log as it was then: each active job with its next fire, each unfinished
        occurrence. ``after`` is the id of the last entry of the page before. A page costs as much
        as all of it: some seconds for 100,000 jobs.
        """
        return past_index.due_at(
            self._connected().of_one_log("what was due").past,
            past_moment("instant", instant),
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
        )

    def due_next(self, until: datetime, *, limit: int = DEFAULT_LIMIT) -> list[IndexEntry]:
        """What the next-run index holds to be fired before ``until`` (aware), by due time.

        The next fire of each active job, retries and ordered runs, the overdue ones first. A job
        that fires often has one entry: :meth:`upcoming` has those that follow. What waits for a
        slot of a full lane is left out.
        """
        moment = past_moment("until", until)
        due = self._connected().of_one_log("what is due next").due
        return list(due.due_next(moment, checked_limit(limit)))

    def executions(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        by_end: bool = False,
        job_id: Identifier | None = None,
        name: str | None = None,
        queue: str | None = None,
        label: Label | None = None,
        owner: str | None = None,
        state: Phase | None = None,
        kind: OccurrenceKind | None = None,
        failure: FailureKind | None = None,
        worker: str | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
        archive: Folder | None = None,
    ) -> list[Execution]:
        """What ran between two instants (aware), with when, by whom, how long and how late.

        ``since`` and ``until`` speak of fire times; with ``by_end`` of the instants at which runs
        ended, which finds a replay of an old one. ``name``, ``queue``, ``owner`` and ``label``
        choose by the job as it is now, ``failure`` and ``worker`` by any attempt. In the order of
        fire times, or of ends; ``after`` is the id of the last one of the page before, ``limit``
        from 1 to 10,000. What was skipped before any attempt did not run (see :meth:`skips`) and
        is left out unless ``state`` asks for it, as is what was ordered and not claimed yet. A
        choice that fits few runs is looked for piece by piece: narrow the time where it takes long.
        ``archive`` is a folder of retention: what has left the log is among the answers, marked
        with the file; not together with ``by_end``.
        """
        wanted = ExecutionChoice(
            _chosen_jobs(job_id, name, queue, owner, label),
            chosen_time("since", since),
            chosen_time("until", until),
            by_end=by_end,
            state=chosen_state(state),
            kind=chosen_from("kind", kind, get_args(OccurrenceKind)),
            failure=chosen_from("failure", failure, get_args(FailureKind)),
            worker=chosen_text("worker", worker),
        )
        client, limit = self._of_these_runs(job_id), checked_limit(limit)
        behind = None if after is None else occurrence_uuid(after)
        found = client.audit.executions(wanted, after=behind, limit=limit)
        if archive is None:
            return self.read_out(found)
        folder = ArchiveFolder(Path(archive))
        states = client.context.states
        past = archived_executions(folder, states, wanted, after=behind, limit=limit)
        return self.read_out(merged(found, past, limit))

    def skips(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        job_id: Identifier | None = None,
        name: str | None = None,
        queue: str | None = None,
        label: Label | None = None,
        owner: str | None = None,
        cause: SkipCause | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[Skip]:
        """What did not run and why: dropped ranges and skipped runs with a fire time in between.

        From ``since`` on and before ``until`` (aware), in the order of their last fire times.
        ``after`` is the id of the last one of the page before; ``limit`` is from 1 to 10,000.
        """
        wanted = SkipChoice(
            _chosen_jobs(job_id, name, queue, owner, label),
            chosen_time("since", since),
            chosen_time("until", until),
            chosen_from("cause", cause, get_args(SkipCause)),
        )
        return self._of_these_runs(job_id).audit.skips(
            wanted,
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
        )

    def statistics(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        bucket_s: float = 86_400,
        by: Grouping = "job",
        job_id: Identifier | None = None,
        name: str | None = None,
        queue: str | None = None,
        label: Label | None = None,
        owner: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 1000,
    ) -> list[Statistics]:
        """Runs, failures, durations and lateness of finished occurrences, in stretches of time.

        By fire times from ``since`` on and before ``until`` (aware), in buckets of ``bucket_s``
        whole seconds that count from 1970; ``by`` "job", "name" or "all". In the order of bucket
        and group; ``after`` is these two of the last row of the page before. Raises
        ``InvalidPolicy`` where more than 2,000,000 occurrences would have to be read.
        """
        begin = chosen_time("since", since)
        if after is not None:
            again = bucket_of(past_moment("after", after[0]), bucket_s)
            begin = again if begin is None else max(begin, again)
        wanted = ExecutionChoice(
            _chosen_jobs(job_id, name, queue, owner, label), begin, chosen_time("until", until)
        )
        return statistics(
            self._of_these_runs(job_id).audit.timings(wanted),
            bucket_s=bucket_s,
            by=cast("Grouping", chosen_from("by", by, get_args(Grouping))),
            after=after,
            limit=limit,
        )

    def _of_these_runs(self, job_id: Identifier | None) -> Client:
        """Who knows of a job's runs, or of all."""
        client = self._connected()
        if job_id is None:
            return client.of_one_log("what ran, and did not, of more than one job")
        return client.of_job(job_uuid(job_id))


def past_moment(name: str, moment: datetime) -> datetime:
    """An aware instant, in UTC; ``InvalidSchedule`` for one without a zone."""
    found = chosen_time(name, moment)
    if found is None:
        raise InvalidSchedule(f"{name}: give an instant, such as 2027-03-01T08:00:00+00:00")
    return found


def _chosen_jobs(
    job_id: Identifier | None,
    name: str | None,
    queue: str | None,
    owner: str | None,
    label: Label | None,
) -> JobChoice:
    identity: UUID | None = None if job_id is None else job_uuid(job_id)
    return JobChoice(
        identity,
        chosen_text("name", name),
        chosen_text("queue", queue),
        chosen_text("owner", owner),
        chosen_label(label),
    )
