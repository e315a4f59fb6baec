"""The commands that can be given within a transaction, one method for each.

What is wrong with their arguments is raised before anything is asked; what the job's state refuses,
before anything is put down.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from horolog.application.commands.defining import checked_key, checked_payload, checked_schedule
from horolog.application.commands.job_spec import JobSpec
from horolog.application.commands.triggering import check_request_id, check_time, drawn_salt
from horolog.application.inbox.given import (
    GivenCancel,
    GivenPause,
    GivenRegistration,
    GivenReschedule,
    GivenResume,
    GivenTrigger,
    GivenUpdate,
    plain_policies,
    stated_definition,
)
from horolog.application.inbox.giving import GivenFields, Giver, Giving
from horolog.domain.ids import keyed_job_id
from horolog.domain.schedule import Schedule


class Commands:
    """As the functions of :mod:`horolog.application.commands`, and raising what they raise."""

    def __init__(self, giver: Giver) -> None:
        self._giver = giver

    def register(self, spec: JobSpec) -> Giving:
        key = None if spec.key is None else checked_key(spec.key)
        identity = None if key is None else keyed_job_id(self._giver.namespace, key)

        def make(fields: GivenFields) -> GivenRegistration:
            definition = stated_definition(spec, fields["job_id"], fields["given_at"])
            return GivenRegistration(definition=definition, key=key, replace=spec.replace, **fields)

        return self._giver.give(identity, make, reason=spec.reason)

    def reschedule(
        self, job_id: UUID, schedule: Schedule, *, expected_version: int | None, reason: str | None
    ) -> Giving:
        stated = checked_schedule(schedule).to_json()

        def make(fields: GivenFields) -> GivenReschedule:
            return GivenReschedule(schedule=stated, expected_version=expected_version, **fields)

        return self._giver.give(job_id, make, reason=reason)

    def update(
        self,
        job_id: UUID,
        *,
        payload: Mapping[str, Any] | None,
        policies: Mapping[str, Any],
        expected_version: int | None,
        reason: str | None,
    ) -> Giving:
        values = None if payload is None else checked_payload(payload)
        changes = plain_policies(policies)

        def make(fields: GivenFields) -> GivenUpdate:
            return GivenUpdate(
                payload=values, policies=changes, expected_version=expected_version, **fields
            )

        return self._giver.give(job_id, make, reason=reason)

    def pause(self, job_id: UUID, *, expected_version: int | None, reason: str | None) -> Giving:
        def make(fields: GivenFields) -> GivenPause:
            return GivenPause(expected_version=expected_version, **fields)

        return self._giver.give(job_id, make, reason=reason)

    def resume(
        self, job_id: UUID, *, catch_up: bool, expected_version: int | None, reason: str | None
    ) -> Giving:
        def make(fields: GivenFields) -> GivenResume:
            return GivenResume(catch_up=catch_up, expected_version=expected_version, **fields)

        return self._giver.give(job_id, make, reason=reason)

    def cancel(self, job_id: UUID, *, expected_version: int | None, reason: str | None) -> Giving:
        def make(fields: GivenFields) -> GivenCancel:
            return GivenCancel(expected_version=expected_version, **fields)

        return self._giver.give(job_id, make, reason=reason)

    def trigger(
        self, job_id: UUID, *, at: datetime | None, request_id: str | None, reason: str | None
    ) -> Giving:
        check_time(at)
        check_request_id(request_id)
        salt = request_id or drawn_salt(self._giver.entropy)

        def make(fields: GivenFields) -> GivenTrigger:
            moment = fields["given_at"] if at is None else at
            return GivenTrigger(at=moment, request_id=request_id, salt=salt, **fields)

        return self._giver.give(job_id, make, reason=reason, request_id=request_id)
