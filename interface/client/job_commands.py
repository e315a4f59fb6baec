"""The commands about one job: each takes ``connection=`` and may be part of a transaction."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack

from horolog.application.answers.job import Job
from horolog.application.answers.occurrence import Occurrence
from horolog.application.commands.job_spec import JobSpec, Policies
from horolog.domain.definition import CatchUp, OnUnknown, Overlap
from horolog.domain.retry import Retry
from horolog.domain.schedule import Schedule
from horolog.interface.client.connected import Connected
from horolog.interface.identifiers import Identifier, job_uuid
from horolog.interface.tracing import traced


class JobCommands(Connected):
    """Registers and changes jobs, and orders runs of them."""

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
        return self._carried_out(connection, lambda taker: taker.register(spec), Job.of)

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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.reschedule(
                identity, schedule, expected_version=expected_version, reason=reason
            ),
            Job.of,
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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.update(
                identity,
                payload=payload,
                policies=policies,
                expected_version=expected_version,
                reason=reason,
            ),
            Job.of,
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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.pause(identity, expected_version=expected_version, reason=reason),
            Job.of,
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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.resume(
                identity,
                catch_up=catch_up,
                expected_version=expected_version,
                reason=reason,
            ),
            Job.of,
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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.cancel(identity, expected_version=expected_version, reason=reason),
            Job.of,
        )

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
        identity = job_uuid(job_id)
        return self._carried_out(
            connection,
            lambda taker: taker.trigger(identity, at=at, request_id=request_id, reason=reason),
            Occurrence.of,
        )
