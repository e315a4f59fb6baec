"""A command as it lies in the inbox: a document that says all of it, and reads back as it was.

Ids and random parts are drawn when the command is given, so that the client knows them before its
commit, and carrying the command out a second time names the same things.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from horolog.application.commands.defining import checked_policies, define
from horolog.application.commands.job_spec import JobSpec
from horolog.domain.retry import Retry
from horolog.domain.schedule import schedule_from_json


class Given(BaseModel):
    """What every command has: the job, when it was given (the database's clock), by whom, why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: UUID
    given_at: datetime
    actor: str
    reason: str | None = None
    correlation: UUID
    traceparent: str | None = None
    expected_version: int | None = None


class GivenRegistration(Given):
    """``definition`` is the job's, with its schedule as it was stated, before it was anchored."""

    command: Literal["register"] = "register"
    definition: dict[str, Any]
    key: str | None = None
    replace: bool = False

    def spec(self) -> JobSpec:
        fields: dict[str, Any] = self.definition | {
            "schedule": schedule_from_json(self.definition["schedule"]),
            "retry": Retry.model_validate(self.definition.get("retry", {})),
        }
        return JobSpec(**fields, key=self.key, replace=self.replace, reason=self.reason)


class GivenReschedule(Given):
    command: Literal["reschedule"] = "reschedule"
    schedule: dict[str, Any]


class GivenUpdate(Given):
    command: Literal["update"] = "update"
    payload: dict[str, Any] | None = None
    policies: dict[str, Any] = Field(default_factory=dict)

    def checked_policies(self) -> dict[str, Any]:
        policies = dict(self.policies)
        if "retry" in policies:
            policies["retry"] = Retry.model_validate(policies["retry"])
        return policies


class GivenPause(Given):
    command: Literal["pause"] = "pause"


class GivenResume(Given):
    command: Literal["resume"] = "resume"
    catch_up: bool = False


class GivenCancel(Given):
    command: Literal["cancel"] = "cancel"


class GivenTrigger(Given):
    """``at`` is the fire time; ``salt`` tells the run apart where there is no request id."""

    command: Literal["trigger"] = "trigger"
    at: datetime
    request_id: str | None = None
    salt: str


AnyGiven = Annotated[
    GivenRegistration
    | GivenReschedule
    | GivenUpdate
    | GivenPause
    | GivenResume
    | GivenCancel
    | GivenTrigger,
    Field(discriminator="command"),
]
_READS: TypeAdapter[AnyGiven] = TypeAdapter(AnyGiven)


def read_given(document: object) -> AnyGiven:
    """The command behind a document; raises pydantic's ``ValidationError``."""
    return _READS.validate_python(document)


def stated_definition(spec: JobSpec, job_id: UUID, now: datetime) -> dict[str, Any]:
    """The definition to put down; raises what registering the job would raise."""
    definition = define(spec, job_id, now)
    return definition.model_dump(mode="json") | {"schedule": spec.schedule.to_json()}


def plain_policies(policies: Mapping[str, Any]) -> dict[str, Any]:
    """Policies as JSON values; raises ``InvalidPolicy`` for text that cannot be kept."""
    return {
        name: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        for name, value in checked_policies(policies).items()
    }
