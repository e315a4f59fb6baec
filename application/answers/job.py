"""A job, as a client sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.domain.definition import CatchUp, OnUnknown, Overlap
from horolog.domain.job import JobState, JobStatus
from horolog.domain.retry import Retry
from horolog.domain.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Job:
    """A job at ``version``, the number of its own events so far.

    ``next_run`` is its next fire time (UTC, before jitter), ``None`` while it is paused and after
    its end. ``payload`` is JSON, with references as ``{"$ref": "cards/42"}``; that of a job
    with a ``subject`` reads ``{"$sealed": true}``, or ``{"$erased": true}`` once the subject is
    forgotten, unless the scheduler was told to ``reveal`` it. ``timeout`` and
    ``catch_up_window`` are seconds. ``fires`` counts the fire times that the schedule has used up.
    """

    id: UUID
    key: str | None
    name: str
    status: JobStatus
    next_run: datetime | None
    version: int
    schedule: Schedule
    payload: Mapping[str, Any]
    queue: str
    priority: int
    retry: Retry
    timeout: float | None
    overlap: Overlap
    overlap_max: int
    catch_up: CatchUp
    catch_up_window: float
    catch_up_rate: float
    concurrency_key: str | None
    concurrency_limit: int | None
    rate_limit: float | None
    on_unknown: OnUnknown
    start_within: float | None
    finish_within: float | None
    expect_success_by: float | None
    owner: str | None
    subject: str | None
    labels: Mapping[str, str]
    partition: int
    fires: int

    @classmethod
    def of(cls, state: JobState) -> "Job":
        """The answer that a state gives; what is encrypted stays so."""
        definition = state.definition
        return cls(
            id=state.id,
            key=state.key,
            name=definition.name,
            status=state.status,
            next_run=state.next_fire if state.status == "active" else None,
            version=state.version,
            schedule=definition.parsed_schedule(),
            payload=definition.payload,
            queue=definition.queue,
            priority=definition.priority,
            retry=definition.retry,
            timeout=definition.timeout,
            overlap=definition.overlap,
            overlap_max=definition.overlap_max,
            catch_up=definition.catch_up,
            catch_up_window=definition.catch_up_window,
            catch_up_rate=definition.catch_up_rate,
            concurrency_key=definition.concurrency_key,
            concurrency_limit=definition.concurrency_limit,
            rate_limit=definition.rate_limit,
            on_unknown=definition.on_unknown,
            start_within=definition.start_within,
            finish_within=definition.finish_within,
            expect_success_by=definition.expect_success_by,
            owner=definition.owner,
            subject=definition.subject,
            labels=definition.labels,
            partition=state.partition,
            fires=state.fires,
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)
