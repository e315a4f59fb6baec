"""What the routes take: bodies with every field stated, of the right type, and nothing else.

Limits of a job's fields are those of :class:`JobDefinition`, which they derive from. A schedule is
written as in a job file: told by what it has (``cron``, ``every``, ``at`` or ``rrule``).
"""

from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.fields import FieldInfo

from horolog.application.commands.backfill_request import MAX_RATE, Defined, Reprocess
from horolog.application.commands.job_spec import JobSpec, Policies
from horolog.application.privacy.payloads import MAX_SUBJECT_LENGTH
from horolog.domain.definition import JobDefinition
from horolog.domain.retry import Retry
from horolog.interface.job_file import read_schedule
from horolog.interface.web.api.asking import Instant, Text
from horolog.interface.web.api.schedules import ScheduleForm
from horolog.projections.changes import PROJECTIONS

MAX_BATCH: Final = 1000

Reason = Annotated[Text, Field(max_length=2000, description="Why; it is kept in the log.")] | None


def _whole_numbers(given: Any) -> Any:
    """JSON knows one kind of number: 3.0 is 3 where a whole one is wanted."""
    if not isinstance(given, dict):
        return given
    fields = cast("dict[str, Any]", given)
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in fields.items()
    }


class Body(BaseModel):
    """Strict: a number is no text, and what has no meaning here is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    _whole = model_validator(mode="before")(_whole_numbers)


class _RetryFields(Body):
    def value(self) -> Retry:
        """The same as a value of the domain."""
        return Retry(**{name: getattr(self, name) for name in Retry.model_fields})


if TYPE_CHECKING:
    RetryForm = _RetryFields
else:
    RetryForm = create_model(
        "RetryForm",
        __base__=_RetryFields,
        __doc__="How often and how patiently an occurrence is tried; seconds.",
        **{name: (field.annotation, field) for name, field in Retry.model_fields.items()},
    )


class JobBody(JobDefinition):
    """A job to register. With ``replace`` the job that has the key is changed where it differs."""

    model_config = ConfigDict(strict=True)

    _whole = model_validator(mode="before")(_whole_numbers)

    schedule: ScheduleForm
    retry: RetryForm = RetryForm()  # pyright: ignore[reportIncompatibleVariableOverride]
    key: (
        Annotated[
            Text, Field(min_length=1, max_length=512, description="The same key is the same job.")
        ]
        | None
    ) = None
    reason: Reason = None
    replace: bool = False

    def spec(self) -> JobSpec:
        """Raises ``InvalidSchedule``."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        stated: dict[str, Any] = {
            "schedule": read_schedule(self.schedule),
            "retry": self.retry.value(),
        }
        return JobSpec(**fields | stated)


class DeclaredJob(JobBody):
    """A job of a declared set, which is known by its key."""

    key: Annotated[Text, Field(min_length=1, max_length=512)]  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


def _changeable() -> dict[str, Any]:
    """The fields of a definition that a change may touch, none of which has to be given."""
    fields: dict[str, Any] = {"payload": JobDefinition.model_fields["payload"]}
    fields |= {name: JobDefinition.model_fields[name] for name in Policies.__annotations__}
    fields["retry"] = FieldInfo.from_annotated_attribute(RetryForm, RetryForm())
    return {name: (field.annotation, field) for name, field in fields.items()}


class _Change(Body):
    reason: Reason = None

    def given(self) -> dict[str, Any]:
        """What the caller stated, and nothing else."""
        stated = {name: getattr(self, name) for name in self.model_fields_set - {"reason"}}
        return stated | ({"retry": stated["retry"].value()} if "retry" in stated else {})


if TYPE_CHECKING:
    ChangeBody = _Change
else:
    ChangeBody = create_model(
        "ChangeBody",
        __base__=_Change,
        __doc__="What of a job is to change: the fields that are given, and no other.",
        **_changeable(),
    )


class ReasonBody(Body):
    """Why."""

    reason: Reason = None


class ResumeBody(ReasonBody):
    """With ``catch_up`` the schedule goes on at the first fire time of the pause."""

    catch_up: bool = False


class ScheduleBody(ReasonBody):
    """Another schedule."""

    schedule: ScheduleForm


class TriggerBody(ReasonBody):
    """An extra run at ``at``, now if absent; the same ``request_id`` is one run."""

    at: Instant | None = None
    request_id: Annotated[Text, Field(min_length=1, max_length=256)] | None = None


class BackfillBody(ReasonBody):
    """Runs for the fire times from ``start`` to ``end`` that have none."""

    start: Instant
    end: Instant
    reprocess: Reprocess = "none"
    definition: Defined = "then"
    reverse: bool = False
    rate: Annotated[float, Field(gt=0, le=MAX_RATE)] | None = None
    request_id: Annotated[Text, Field(min_length=1, max_length=256)] | None = None
    dry_run: bool = False


class ForgetBody(ReasonBody):
    """Whose data is to be erased, for good."""

    subject: Annotated[Text, Field(min_length=1, max_length=MAX_SUBJECT_LENGTH)]


class CompareBody(Body):
    """A schedule to lay beside the job's own: the next ``n`` fire times of each."""

    schedule: ScheduleForm
    n: Annotated[int, Field(ge=1, le=1000)] = 20


class PreviewBody(Body):
    """A schedule, and from when its next ``n`` fire times are wanted (now, if absent)."""

    schedule: ScheduleForm
    after: Instant | None = None
    n: Annotated[int, Field(ge=1, le=1000)] = 10


class ManyBody(Body):
    """Jobs to register in one transaction: all of them, or none."""

    jobs: Annotated[list[JobBody], Field(min_length=1, max_length=MAX_BATCH)]


class ApplyBody(ReasonBody):
    """A declared set of jobs, each with a key. ``prune`` cancels other jobs that have a key, only
    those with the label ``within`` where it is given."""

    jobs: Annotated[list[DeclaredJob], Field(max_length=MAX_BATCH)]
    prune: bool = False
    within: Text | None = None
    dry_run: bool = False


class ReplayBody(ReasonBody):
    """Dead letters to try again: of an owner, of a handler, or all; ``rate`` of them a second."""

    owner: Text | None = None
    name: Text | None = None
    limit: Annotated[int, Field(ge=1, le=100_000)] | None = None
    rate: Annotated[float, Field(gt=0, le=1000)] | None = None
    dry_run: bool = False


class QueueBody(Body):
    """At most ``limit`` runs at once and ``rate`` a second; with neither there is no limit."""

    limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rate: Annotated[float, Field(ge=0.0001, le=100_000)] | None = None


ProjectionName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(PROJECTIONS)})]


class ProjectionsBody(ReasonBody):
    """Which read models; all of them, where none is named."""

    names: Annotated[list[ProjectionName], Field(max_length=len(PROJECTIONS))] = []
