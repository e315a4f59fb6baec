"""The commands about many jobs or many runs at once."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, Unpack, overload

from horolog.application.answers.difference import Difference
from horolog.application.answers.job import Job
from horolog.application.answers.planned_run import PlannedRun
from horolog.application.answers.zone_correction import ZoneCorrection
from horolog.application.commands import (
    applying,
    backfilling,
    registering_many,
)
from horolog.application.commands.backfill_request import Backfill, BackfillOptions
from horolog.application.commands.correcting import Correcting, correct
from horolog.application.commands.job_spec import JobSpec
from horolog.application.privacy import forgetting
from horolog.application.privacy.forgetting import Forgetting
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.domain.errors import InvalidPolicy
from horolog.interface.client.connected import Connected
from horolog.interface.filters import (
    chosen_label,
)
from horolog.interface.identifiers import Identifier, job_uuid


class JobSets(Connected):
    """Registers, applies, backfills, corrects and forgets."""

    def register_many(self, specs: Iterable[JobSpec], *, batch: int = 1000) -> Iterator[Job]:
        """Registers jobs as the iterator is read, ``batch`` (1 to 10,000) in one transaction.

        A spec that is refused raises with its index (from 0) in the message before anything of its
        batch is written; the batches before it stay.
        """
        for state in registering_many.register_many(self._context, specs, batch=batch):
            yield self.read_out(Job.of(state))

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
        identity = job_uuid(job_id)
        client = self._connected().of_job(identity)
        context, orders = client.context, client.orders
        if dry_run:
            return backfilling.planned(context, orders, identity, asked)
        return backfilling.backfill(context, orders, identity, asked, reason=reason)

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
        client = self._connected().of_one_log("what zone data have moved")
        correcting = Correcting(client.jobs, client.occurrences, client.log)
        found = correcting.found(
            after=None if after is None else job_uuid(after),
            limit=checked_limit(limit),
            following=checked_limit(following, name="following"),
        )
        for correction in found if apply else ():
            correct(self._context, correcting, correction.job_id, reason=reason)
        return found

    def forget(self, subject: str, *, reason: str | None = None) -> Forgetting:
        """Erases the data of a subject: destroys its key and cancels its jobs, for good.

        When this returns, nobody can read its payloads, results and error messages any more, in the
        log or anywhere else; no run of it begins, those that ran were asked to stop; its dead
        letters are discarded; and no job of the subject can be registered again. Forgetting again
        does what is left, if anything is. Needs no master key. Raises ``InvalidPolicy`` for what
        can be no subject. What backups still hold: docs/privacy.md.
        """
        client = self._connected().of_one_log("the data of a subject")
        return forgetting.forget(
            client.context, client.log, client.jobs, client.occurrences, subject, reason=reason
        )
