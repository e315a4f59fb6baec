"""The scheduler's public face: what a client asks, and gets.

A thin layer: each method turns what users write (ids as text, keys, keywords) into a command or a
query of the application, and its state into an answer. A client needs Postgres alone; what it asked
for is kept when the call returns, and it may walk away.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, cast, overload

from horolog.application.alerting import setting_rules
from horolog.application.alerting.rules import AlertRule
from horolog.application.answers.alert import Alert, WatchedOwner
from horolog.application.answers.dead_letter import DeadLetter
from horolog.application.answers.difference import Difference
from horolog.application.answers.job import Job
from horolog.application.answers.limited_queue import LimitedQueue
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.occurrence import Occurrence
from horolog.application.answers.planned_run import PlannedRun
from horolog.application.answers.zone_correction import ZoneCorrection
from horolog.application.commands import (
    applying,
    backfilling,
    cancelling,
    changing,
    dead_letters,
    limiting_queues,
    registering,
    registering_many,
    triggering,
)
from horolog.application.commands.backfill_request import Backfill, BackfillOptions
from horolog.application.commands.context import Context
from horolog.application.commands.correcting import Correcting, correct
from horolog.application.commands.job_spec import JobSpec, Policies
from horolog.application.privacy import forgetting
from horolog.application.privacy.forgetting import Forgetting
from horolog.application.privacy.ports import NoKeyring
from horolog.application.privacy.reading_out import ReadingOut
from horolog.application.queries import asking
from horolog.application.queries.archives import archived_history
from horolog.application.queries.following import Follower, follow
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.application.queries.past_jobs import job_at, jobs_at
from horolog.application.queries.ports import JobFilter, OccurrenceFilter
from horolog.domain.definition import CatchUp, OnUnknown, Overlap
from horolog.domain.errors import InvalidPolicy
from horolog.domain.job import JobStatus
from horolog.domain.occurrence import Phase
from horolog.domain.retry import Retry
from horolog.domain.schedule import FireTime, Schedule, ScheduleDifference
from horolog.domain.text import storable
from horolog.infrastructure.archive.reading import ArchiveFolder
from horolog.interface.filters import (
    chosen_label,
    chosen_place,
    chosen_state,
    chosen_status,
    chosen_text,
    chosen_time,
)
from horolog.interface.identifiers import Identifier, as_uuid, job_uuid, occurrence_uuid
from horolog.interface.questions import Questions, past_moment
from horolog.interface.settings import MAX_ACTOR, Settings
from horolog.interface.tracing import current_traceparent, traced
from horolog.interface.wiring import Client, SystemEntropy, connect

if TYPE_CHECKING:
    from horolog.application.inbox.commands import Commands
    from horolog.application.inbox.giving import Giving

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class AsyncTransaction:
    """A connection of asyncio, handed over by an ``AsyncScheduler``: it awaits the answer."""

    connection: object

    async def later(
        self, namespace: str, giving: "Giving", answer: Callable[[Any], Answer]
    ) -> Answer:
        from horolog.infrastructure.clients_transaction import give_async

        return answer(await give_async(self.connection, namespace, giving))


class Scheduler(Questions):
    """Registers jobs and asks about them; safe to share between threads.

    ``database_url`` defaults to ``HOROLOG_DATABASE_URL``, then to the embedded server of ``horolog
    dev``; ``namespace`` to ``HOROLOG_NAMESPACE`` or "horolog"; ``actor``, the name that the events
    carry, to user@host. Nothing connects before the first call (entering ``with`` is one).
    ``reveal`` has the answers show the data of subjects, which needs the master key; without it
    they say that there is some.

    Every method may raise ``StoreUnavailable`` (Postgres is away: nothing was changed, or the
    answer of the change was lost and the same call with the same key is safe), ``SchemaMissing``
    (run ``horolog migrate``) and ``SchemaTooNew``. Ids are taken as ``UUID`` or as text.

    What changes a job takes ``connection=``: the client's own connection (psycopg, psycopg2,
    SQLAlchemy's Connection or Session, Django's), in whose transaction the command is then given. A
    rollback leaves nothing of it; once committed it is carried out within some milliseconds, and
    what is returned is what it will be. See :mod:`horolog.application.inbox`.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        home: str | None = None,
        settings: Settings | None = None,
        reveal: bool = False,
    ) -> None:
        self.reveal = reveal
        self.settings = settings or Settings.read(
            database_url, namespace=namespace, actor=actor, home=home
        )
        self._client: Client | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def acting_as(self, actor: str) -> "Scheduler":
        """The same, on the same connections, for somebody else: ``actor`` is who the events say
        did it. For programs that act for many people; closing it closes nothing."""
        client = self._connected()
        settings = replace(self.settings, actor=storable(actor, MAX_ACTOR))
        other = Scheduler(settings=settings, reveal=self.reveal)
        context = replace(client.context, actor=other.settings.actor)
        other._client = replace(client, context=context, close=_nothing)
        return other

    # Jobs

    @traced
    def register(
        self,
        name: str,
        *,
        schedule: Schedule,
        payload: Mapping[str, Any] | None = None,
        key: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: Retry | None = None,
        timeout: float | None = None,
        overlap: Overlap = "allow",
        overlap_max: int = 100,
        catch_up: CatchUp = "latest",
        catch_up_window: float = 86_400.0,
        catch_up_rate: float = 50.0,
        concurrency_key: str | None = None,
        concurrency_limit: int | None = None,
        rate_limit: float | None = None,
        on_unknown: OnUnknown = "retry",
        start_within: float | None = None,
        finish_within: float | None = None,
        expect_success_by: float | None = None,
        owner: str | None = None,
        subject: str | None = None,
        labels: Mapping[str, str] | None = None,
        reason: str | None = None,
        replace: bool = False,
        connection: object | None = None,
    ) -> Job:
        """Registers a job; when this returns, it is in the log. With ``connection``: when the
        transaction that is open there is committed.

        The arguments are those of :class:`JobSpec`. With a ``key`` the call may be repeated: the
        same definition is the same job and leaves no event, another one raises ``KeyConflict``
        unless ``replace=True``, which changes the job where it differs.

        Raises ``InvalidSchedule``, ``InvalidPayload``, ``InvalidPolicy`` and ``KeyConflict``; with
        a ``subject`` also ``NoMasterKey`` and ``SubjectForgotten``.
        """
        spec = JobSpec(
            name,
            schedule=schedule,
            payload=payload,
            key=key,
            queue=queue,
            priority=priority,
            retry=retry or Retry(),
            timeout=timeout,
            overlap=overlap,
            overlap_max=overlap_max,
            catch_up=catch_up,
            catch_up_window=catch_up_window,
            catch_up_rate=catch_up_rate,
            concurrency_key=concurrency_key,
            concurrency_limit=concurrency_limit,
            rate_limit=rate_limit,
            on_unknown=on_unknown,
            start_within=start_within,
            finish_within=finish_within,
            expect_success_by=expect_success_by,
            owner=owner,
            subject=subject,
            labels=labels,
            reason=reason,
            replace=replace,
        )
        if connection is not None:
            return self._within(connection, self._giving.register(spec), Job.of)
        return self.read_out(Job.of(registering.register(self._context, spec)))

    def register_many(self, specs: Iterable[JobSpec], *, batch: int = 1000) -> Iterator[Job]:
        """Registers jobs as the iterator is read, ``batch`` (1 to 10,000) in one transaction.

        A spec that is refused raises with its index (from 0) in the message before anything of its
        batch is written; the batches before it stay.
        """
        for state in registering_many.register_many(self._context, specs, batch=batch):
            yield self.read_out(Job.of(state))

    @traced
    def reschedule(
        self,
        job_id: Identifier,
        schedule: Schedule,
        *,
        expected_version: int | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Job:
        """From now on only the new schedule fires; what was claimed before still runs.

        Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidSchedule``, and
        ``VersionConflict`` where the job is not at ``expected_version``.
        """
        if connection is not None:
            giving = self._giving.reschedule(
                job_uuid(job_id), schedule, expected_version=expected_version, reason=reason
            )
            return self._within(connection, giving, Job.of)
        return self.read_out(
            Job.of(
                changing.reschedule(
                    self._context,
                    job_uuid(job_id),
                    schedule,
                    expected_version=expected_version,
                    reason=reason,
                )
            )
        )

    @traced
    def update(
        self,
        job_id: Identifier,
        *,
        payload: Mapping[str, Any] | None = None,
        expected_version: int | None = None,
        reason: str | None = None,
        connection: object | None = None,
        **policies: Unpack[Policies],
    ) -> Job:
        """Changes the payload and the policies that are given; runs that have not begun take them.

        Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidPayload``,
        ``InvalidPolicy``, and ``VersionConflict`` where the job is not at ``expected_version``.
        """
        if connection is not None:
            giving = self._giving.update(
                job_uuid(job_id),
                payload=payload,
                policies=policies,
                expected_version=expected_version,
                reason=reason,
            )
            return self._within(connection, giving, Job.of)
        return self.read_out(
            Job.of(
                changing.update(
                    self._context,
                    job_uuid(job_id),
                    payload=payload,
                    policies=policies,
                    expected_version=expected_version,
                    reason=reason,
                )
            )
        )

    @traced
    def pause(
        self,
        job_id: Identifier,
        *,
        expected_version: int | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Job:
        """No fire time is claimed until the job is resumed; what was claimed before still runs.

        Raises ``UnknownJob``, ``NotAllowed`` for a job that has ended, ``VersionConflict``.
        """
        if connection is not None:
            giving = self._giving.pause(
                job_uuid(job_id), expected_version=expected_version, reason=reason
            )
            return self._within(connection, giving, Job.of)
        return self.read_out(
            Job.of(
                changing.pause(
                    self._context,
                    job_uuid(job_id),
                    expected_version=expected_version,
                    reason=reason,
                )
            )
        )

    @traced
    def resume(
        self,
        job_id: Identifier,
        *,
        catch_up: bool = False,
        expected_version: int | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Job:
        """The schedule goes on at its next fire time; the log says what the pause dropped.

        With ``catch_up`` it goes on at the first fire time of the pause, and the job's catch-up
        policy decides which of them still run. Raises ``UnknownJob``, ``NotAllowed`` for a job that
        has ended, ``VersionConflict``.
        """
        if connection is not None:
            giving = self._giving.resume(
                job_uuid(job_id),
                catch_up=catch_up,
                expected_version=expected_version,
                reason=reason,
            )
            return self._within(connection, giving, Job.of)
        return self.read_out(
            Job.of(
                changing.resume(
                    self._context,
                    job_uuid(job_id),
                    catch_up=catch_up,
                    expected_version=expected_version,
                    reason=reason,
                )
            )
        )

    @traced
    def cancel(
        self,
        job_id: Identifier,
        *,
        expected_version: int | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Job:
        """The job never fires again; what has not begun does not run, what runs is asked to stop.

        A run that stops is "skipped"; one that goes on may still succeed. Cancelling again changes
        nothing. Raises ``UnknownJob``, ``VersionConflict``.
        """
        if connection is not None:
            giving = self._giving.cancel(
                job_uuid(job_id), expected_version=expected_version, reason=reason
            )
            return self._within(connection, giving, Job.of)
        return self.read_out(
            Job.of(
                changing.cancel(
                    self._context,
                    job_uuid(job_id),
                    expected_version=expected_version,
                    reason=reason,
                )
            )
        )

    def cancel_occurrence(
        self, occurrence_id: Identifier, *, reason: str | None = None
    ) -> Occurrence:
        """Cancels one run; its job goes on. What has not begun does not run, what runs is asked to
        stop: ``run.cancelled`` is set, a coroutine is cancelled.

        A run that stops is "skipped"; one that goes on may still succeed. Cancelling again changes
        nothing. Raises ``UnknownOccurrence``, ``NotAllowed`` for a run that has ended otherwise.
        """
        identity = occurrence_uuid(occurrence_id)
        state = cancelling.cancel_occurrence(self._context, identity, reason=reason)
        return self.read_out(Occurrence.of(state))

    @traced
    def trigger(
        self,
        job_id: Identifier,
        *,
        at: datetime | None = None,
        request_id: str | None = None,
        reason: str | None = None,
        connection: object | None = None,
    ) -> Occurrence:
        """Orders one extra run, at ``at`` (aware; now, if absent); the same request id is one run.

        Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidSchedule`` for a time
        without a zone.
        """
        if connection is not None:
            giving = self._giving.trigger(
                job_uuid(job_id), at=at, request_id=request_id, reason=reason
            )
            return self._within(connection, giving, Occurrence.of)
        state = triggering.trigger(
            self._context,
            self._connected().orders,
            job_uuid(job_id),
            at=at,
            request_id=request_id,
            reason=reason,
        )
        return Occurrence.of(state)

    @overload
    def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: Literal[False] = ...,
        reason: str | None = ...,
        **options: Unpack[BackfillOptions],
    ) -> int: ...

    @overload
    def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: Literal[True],
        reason: str | None = ...,
        **options: Unpack[BackfillOptions],
    ) -> list[PlannedRun]: ...

    def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: bool = False,
        reason: str | None = None,
        **options: Unpack[BackfillOptions],
    ) -> int | list[PlannedRun]:
        """Orders runs for the fire times from ``start`` to ``end`` that have none; how many.

        Each runs the job as it was at that time: its schedule, payload and policies; with
        ``definition="current"`` the present ones, for the whole range. ``reprocess`` has those run
        again that ended without success ("failed") or at all ("all"), each as an occurrence of its
        own; asked for again with the same ``request_id``, they are the same. ``reverse`` begins
        with the newest, ``rate`` spreads them: so many a second. ``dry_run`` orders nothing and
        returns the list. Fire times that still lie ahead of the job are its schedule's.

        Raises ``UnknownJob``, ``NotAllowed`` for a cancelled job, ``InvalidSchedule`` for a range
        that is empty, has no zone, or holds more than 100,000 fire times, ``InvalidPolicy``,
        ``VersionConflict`` where ``definition="current"`` and another schedule comes meanwhile.
        """
        asked = Backfill(start=start, end=end, **options)
        orders, identity = self._connected().orders, job_uuid(job_id)
        if dry_run:
            return backfilling.planned(self._context, orders, identity, asked)
        return backfilling.backfill(self._context, orders, identity, asked, reason=reason)

    def apply(
        self,
        specs: Iterable[JobSpec],
        *,
        prune: bool = False,
        within: str | tuple[str, str] | Mapping[str, str] | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> Difference:
        """Makes a declared set of keyed jobs true: registers what is missing, changes what differs.

        Everything is checked before anything is written; a set that is true already leaves no
        event. What is not declared is left alone, or with ``prune`` cancelled: every other job that
        has a key, or only those with the label ``within`` ("team=billing"). ``dry_run`` writes
        nothing. Returns what was created, changed (field by field), unchanged and pruned.

        Raises, with the index of the spec (from 0) in the message, ``InvalidPolicy`` for a spec
        without a key of its own, ``NotAllowed`` where the key's job was cancelled, ``KeyConflict``
        where its name or concurrency key differs, ``InvalidSchedule`` and ``InvalidPayload``.
        """
        if within is not None and not prune:
            raise InvalidPolicy("within= says what prune=True may cancel: give both")
        difference = applying.apply(
            self._context,
            self._connected().jobs,
            specs,
            pruning=applying.Pruning(chosen_label(within)) if prune else None,
            dry_run=dry_run,
            reason=reason,
        )
        return self.read_out(difference)

    def zone_corrections(
        self,
        *,
        apply: bool = False,
        following: int = 3,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
        reason: str | None = None,
    ) -> list[ZoneCorrection]:
        """The jobs whose next fire time the installed zone data moves, in the order of ids.

        Each with what was recorded and its next ``following`` (1 to 10,000) fire times as they are
        now. With ``apply`` the page is also corrected: an event for each job, which has its next
        fire time there from then on; what was recorded before keeps its meaning. ``after`` is the
        last id of the page before. For the time after an update of the ``tzdata`` package.
        """
        client = self._connected()
        correcting = Correcting(client.jobs, client.occurrences, client.log)
        found = correcting.found(
            after=None if after is None else job_uuid(after),
            limit=checked_limit(limit),
            following=checked_limit(following, name="following"),
        )
        for correction in found if apply else ():
            correct(self._context, correcting, correction.job_id, reason=reason)
        return found

    # Questions

    def job(self, id_or_key: Identifier, *, as_of: datetime | None = None) -> Job:
        """The job with this id or key as it is now, or was at ``as_of`` (aware).

        Raises ``UnknownJob``, also where it was not registered yet.
        """
        client = self._connected()
        state = asking.find_job(client.context, id_or_key, as_uuid(id_or_key))
        if as_of is None:
            return self.read_out(Job.of(state))
        moment = past_moment("as_of", as_of)
        then = asking.then(job_at(client.past, state.id, moment), id_or_key, moment)
        return self.read_out(Job.of(then))

    def jobs(
        self,
        *,
        status: JobStatus | None = None,
        name: str | None = None,
        label: str | tuple[str, str] | Mapping[str, str] | None = None,
        subject: str | None = None,
        as_of: datetime | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[Job]:
        """A page of jobs in the order of ids; ``after`` is the last id of the page before.

        ``label`` is "name=value", a name alone, or one pair. ``limit`` is from 1 to 10,000. With
        ``as_of`` (aware) the jobs are, and are chosen, as they were then, folded from the log.
        """
        wanted = JobFilter(
            chosen_status(status),
            chosen_text("name", name),
            chosen_label(label),
            chosen_text("subject", subject),
        )
        behind = None if after is None else job_uuid(after)
        if as_of is None:
            page = self._connected().jobs.jobs(wanted, after=behind, limit=checked_limit(limit))
        else:
            moment, past = past_moment("as_of", as_of), self._connected().past
            page = jobs_at(past, wanted, moment, after=behind, limit=checked_limit(limit))
        return self.read_out([Job.of(state) for state in page])

    def upcoming(self, job_id: Identifier, n: int = 10) -> list[FireTime]:
        """The next ``n`` (1 to 10,000) fire times of a job, fewer where its schedule ends before.

        Each has the instant (UTC), the local time, and what a clock change did to it. A paused job
        has none, nor one that has ended. Raises ``UnknownJob``.
        """
        return asking.upcoming(asking.find_job(self._context, job_id, as_uuid(job_id)), n)

    def compare(self, job_id: Identifier, schedule: Schedule, *, n: int = 20) -> ScheduleDifference:
        """What :meth:`reschedule` would change: fire times kept, added and removed, from now on.

        Compares the next ``n`` (1 to 10,000) of each schedule, as far as both were looked at.
        Raises ``UnknownJob``, ``InvalidSchedule``.
        """
        job = asking.find_job(self._context, job_id, as_uuid(job_id))
        return asking.compared(job, schedule, n, now=self._context.clock.now())

    def occurrence(self, occurrence_id: Identifier) -> Occurrence:
        """The occurrence as it is now; raises ``UnknownOccurrence``."""
        occurrences, identity = self._connected().occurrences, occurrence_uuid(occurrence_id)
        return self.read_out(asking.find_occurrence(occurrences, identity))

    def occurrences(
        self,
        *,
        job_id: Identifier | None = None,
        state: Phase | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
        newest_first: bool = False,
    ) -> list[Occurrence]:
        """A page of occurrences in the order of their fire times, finished or not.

        Fire times from ``since`` on and before ``until`` (aware). ``after`` is the id of the last
        one of the page before; ``limit`` is from 1 to 10,000.
        """
        wanted = OccurrenceFilter(
            None if job_id is None else job_uuid(job_id),
            chosen_state(state),
            chosen_time("since", since),
            chosen_time("until", until),
        )
        page = self._connected().occurrences.occurrences(
            wanted,
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
            newest_first=newest_first,
        )
        return self.read_out(page)

    def history(
        self,
        id: Identifier | int,  # noqa: A002 - the name that the contract gives it
        *,
        after: int = 0,
        limit: int = 1000,
        archive: str | os.PathLike[str] | None = None,
    ) -> list[LoggedEvent]:
        """The events of a job (id or key), an occurrence (id) or a partition (its number).

        Oldest first; ``after`` is the version of the last event of the page before. An id that has
        no event has an empty history. ``archive`` is a folder of retention: an occurrence that has
        left the log is looked for there, and its events say so. Raises ``UnknownJob`` for a key
        that no job has.
        """
        client = self._connected()
        identity = None if isinstance(id, int) else as_uuid(id)
        stream = asking.stream_of(client.context, id, identity)
        place = chosen_place(after)
        found = asking.history(client.log, stream, after=place, limit=limit)
        if found or archive is None or client.log.stream(stream, limit=1):
            return self.read_out(found)
        life = ArchiveFolder(Path(archive)).life(stream)
        past = [] if life is None else archived_history(life, after=place, limit=limit)
        return self.read_out(past)

    def log(
        self,
        *,
        after: int = 0,
        topics: Sequence[str] | str | None = None,
        limit: int = 1000,
    ) -> list[LoggedEvent]:
        """A page of all events with a position above ``after``, in their one order.

        ``topics`` chooses: "occurrence.failed.1", or a group such as "job". ``limit`` is from 1 to
        10,000.
        """
        wanted = asking.checked_topics(topics)
        log = self._connected().log
        page = log.log(after=chosen_place(after), topics=wanted, limit=checked_limit(limit))
        return self.read_out([LoggedEvent.of(recorded) for recorded in page])

    def position(self) -> int:
        """The position that the log has reached: ``follow(after=position())`` is what comes now."""
        return self._connected().position()

    def follow(
        self, after: int = 0, *, topics: Sequence[str] | str | None = None
    ) -> Generator[LoggedEvent]:
        """All events with a position above ``after``, and then each as it comes, for ever.

        No event is passed over, also where the connection breaks and is made anew. Close the
        generator, or leave the loop, to end it.
        """
        for recorded in follow(self.follower(after, topics=topics)):
            yield self.read_out(LoggedEvent.of(recorded))

    def follower(self, after: int = 0, *, topics: Sequence[str] | str | None = None) -> Follower:
        """What ``follow`` reads from, for callers that have more to do while they wait."""
        wanted = asking.checked_topics(topics)
        client = self._connected()
        return Follower(client.log, client.news(), after=chosen_place(after), topics=wanted)

    # Subjects

    def forget(self, subject: str, *, reason: str | None = None) -> Forgetting:
        """Erases the data of a subject: destroys its key and cancels its jobs, for good.

        When this returns, nobody can read its payloads, results and error messages any more, in the
        log or anywhere else; no run of it begins, those that ran were asked to stop; its dead
        letters are discarded; and no job of the subject can be registered again. Forgetting again
        does what is left, if anything is. Needs no master key. Raises ``InvalidPolicy`` for what
        can be no subject. What backups still hold: docs/privacy.md.
        """
        client = self._connected()
        return forgetting.forget(
            client.context, client.log, client.jobs, client.occurrences, subject, reason=reason
        )

    # Queues

    def limit_queue(
        self, queue: str, *, limit: int | None = None, rate: float | None = None
    ) -> None:
        """At most ``limit`` runs of a queue at once and ``rate`` a second, over all machines.

        With neither, the queue has no limits any more. Claims decided from now on keep to it.
        Raises ``InvalidPolicy``.
        """
        queues = self._connected().queues
        actor = self.settings.actor
        limiting_queues.limit_queue(queues, queue, limit=limit, rate=rate, actor=actor)

    def limited_queues(self) -> list[LimitedQueue]:
        """The queues that have limits, with what is in use and what waits."""
        return list(self._connected().queues.limited_queues())

    # Alerts

    def set_alert(
        self,
        owner: str | None = None,
        *,
        dead_letters: int | None = None,
        dead_letter_age: float | None = None,
        deadlines: bool = False,
        repeat: float = 3600.0,
        command: Sequence[str] | None = None,
        webhook: str | None = None,
        nats: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Says what is too much for an owner, and whom to tell; replaces the owner's rule.

        Without ``owner`` it is the rule of everybody who has none of their own, and of what has no
        owner. Scanners raise an alert from so many ``dead_letters`` on, from a dead letter of
        ``dead_letter_age`` seconds on, or when one of the ``deadlines`` of a job is missed; they
        tell it again every ``repeat`` seconds while it lasts, and when it is over. ``command`` is
        a program and its arguments (run without a shell, the notice as JSON on its input),
        ``webhook`` a URL that gets it by POST, ``nats`` a subject. Raises ``InvalidPolicy``.
        """
        rule = AlertRule.checked(
            owner,
            dead_letters=dead_letters,
            dead_letter_age=dead_letter_age,
            deadlines=deadlines,
            repeat=repeat,
            command=command,
            webhook=webhook,
            nats=nats,
        )
        client = self._connected()
        setting_rules.set_rule(client.context, client.log, client.alerts, rule, reason)

    def remove_alert(self, owner: str | None = None, *, reason: str | None = None) -> None:
        """Removes the rule of an owner, or everybody's; what it raised is resolved.

        Raises ``NotAllowed`` where there is none.
        """
        client = self._connected()
        setting_rules.remove_rule(client.context, client.log, client.alerts, owner, reason)

    def alert_rules(self) -> list[WatchedOwner]:
        """The rules of alerts, without what may be a secret in them."""
        return [WatchedOwner.of(rule) for rule in self._connected().alerts.rules()]

    def alert_rule(self, owner: str | None = None) -> AlertRule:
        """One rule with all that it holds, secrets too. Raises ``NotAllowed`` where there is
        none."""
        return setting_rules.rule_of_owner(self._connected().alerts, owner)

    def alerts(self) -> list[Alert]:
        """The alerts that hold now, as the log has them."""
        return [Alert.of(state) for state in self._connected().alerts.alerts() if state.is_open]

    def alert_history(
        self, *, owner: str | None = None, after: int = 0, limit: int = DEFAULT_LIMIT
    ) -> list[LoggedEvent]:
        """The events of alerts and of their rules, oldest first; ``after`` is a position."""
        found = self._connected().alerts.history(
            chosen_text("owner", owner), after=chosen_place(after), limit=checked_limit(limit)
        )
        return [LoggedEvent.of(recorded) for recorded in found]

    # Dead letters

    def dead_letters(
        self,
        *,
        owner: str | None = None,
        name: str | None = None,
        after: Identifier | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> list[DeadLetter]:
        """A page of dead letters by fire time; ``after`` is the last id of the page before."""
        page = self._connected().letters.dead_letters(
            owner=chosen_text("owner", owner),
            name=chosen_text("name", name),
            after=None if after is None else occurrence_uuid(after),
            limit=checked_limit(limit),
        )
        return self.read_out(list(page))

    def replay(self, occurrence_id: Identifier, *, reason: str | None = None) -> Occurrence:
        """Tries a dead letter again, at once, under the same key, with a fresh budget of attempts.

        Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter or its job is
        cancelled.
        """
        identity = occurrence_uuid(occurrence_id)
        state = dead_letters.replay(self._context, identity, reason=reason)
        return self.read_out(Occurrence.of(state))

    def discard(self, occurrence_id: Identifier, *, reason: str | None = None) -> Occurrence:
        """Closes a dead letter for good; discarding it again changes nothing.

        Raises ``UnknownOccurrence``; ``NotAllowed`` where it is no dead letter.
        """
        identity = occurrence_uuid(occurrence_id)
        dead_letters.discard(self._context, identity, reason=reason)
        return self.occurrence(identity)

    def replay_many(
        self,
        *,
        owner: str | None = None,
        name: str | None = None,
        limit: int | None = None,
        rate: float | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> int:
        """Replays the dead letters of an owner or a handler (all, if neither is given).

        Oldest first; with ``rate``, so many begin each second. Returns how many, ``limit`` at most;
        with ``dry_run`` only counts them. Raises ``InvalidPolicy`` for a rate that cannot be.
        """
        return dead_letters.replay_many(
            self._context,
            self._connected().letters,
            owner=chosen_text("owner", owner),
            name=chosen_text("name", name),
            most=limit,
            rate=rate,
            dry_run=dry_run,
            reason=reason,
        )

    def read_out(self, answer: Answer) -> Answer:
        """An answer that was not read out yet, such as an event of :meth:`follower`: what is sealed
        in it shown as such, as erased, or revealed."""
        return ReadingOut(self._connected().context.keyring, reveal=self.reveal)(answer)

    @property
    def _context(self) -> Context:
        return self._connected().context

    @property
    def _giving(self) -> "Commands":
        """The commands of this client, to be given within a transaction; needs no connection."""
        # Imported by those who use it: most clients do not.
        from horolog.application.inbox.commands import Commands
        from horolog.application.inbox.giving import Giver

        giver = Giver(
            self.settings.namespace, self.settings.actor, SystemEntropy(), current_traceparent()
        )
        return Commands(giver)

    def _within(
        self, connection: object, giving: "Giving", answer: Callable[[Any], Answer]
    ) -> Answer:
        """The answer to a command that is given in the transaction of ``connection``. What is
        sealed in it is shown as such: nothing is asked on another connection meanwhile."""

        def read_out(outcome: Any) -> Answer:
            return ReadingOut(NoKeyring(), reveal=False)(answer(outcome))

        if isinstance(connection, AsyncTransaction):
            return cast("Answer", connection.later(self.settings.namespace, giving, read_out))
        from horolog.infrastructure.clients_transaction import give

        return read_out(give(connection, self.settings.namespace, giving))

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = connect(self.settings)
            return self._client


def _nothing() -> None:
    """Another scheduler closes the connections."""
