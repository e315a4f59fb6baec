"""What a job is: the handler's name, the schedule, the payload and the policies.

The payload is a statement of intent that has to survive time. What the business may change in
between belongs behind a reference (``{"$ref": "cards/42"}``), which is resolved at execution.
"""

import json
from functools import lru_cache
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field

from horolog.domain.retry import Retry
from horolog.domain.schedule import Schedule, schedule_from_json

Overlap = Literal["allow", "skip", "buffer_one", "buffer_all", "cancel_other"]
CatchUp = Literal["latest", "earliest", "all", "skip"]
OnUnknown = Literal["retry", "dead_letter"]
NAME_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.:/\-]{0,127}$"
QUEUE_PATTERN = r"^[A-Za-z0-9_\-]{1,64}$"

MAX_PAYLOAD_BYTES = 128 * 1024
"""The largest payload, as JSON. It travels in every message; keep large things elsewhere."""


Deadline = Annotated[float, Field(gt=0, le=366 * 86_400, allow_inf_nan=False)]


class JobDefinition(BaseModel):
    """Everything of a job that a user states; times are seconds.

    ``overlap`` decides what happens to a fire time while an earlier run of the job is unfinished:
    it runs too, it is dropped, it waits (the latest one, or up to ``overlap_max`` in order), or the
    earlier run is cancelled and it follows as soon as that has ended. ``catch_up`` decides which of
    the fire times missed during an outage still run, ``catch_up_window`` how late a run may start
    at all, ``catch_up_rate`` how many of a backlog are claimed each second. ``on_unknown`` is what
    becomes of a run whose attempt was lost where nobody can say whether it took effect. A run is
    late that has not begun ``start_within`` its fire time, or not ended ``finish_within`` it; the
    job is, when nothing has succeeded for ``expect_success_by``. ``concurrency_key`` keeps jobs
    that share it in one partition; at most ``concurrency_limit`` of them (of the job's own runs,
    where it has no key) hold a claim or run at once, and at most ``rate_limit`` of them are claimed
    a second. ``subject`` is whose data it carries: its payload, results and errors are sealed
    (:mod:`horolog.domain.sealed`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    schedule: dict[str, Any]
    payload: dict[str, Any] = Field(default_factory=dict)
    queue: Annotated[str, Field(pattern=QUEUE_PATTERN)] = "default"
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    retry: Retry = Retry()
    timeout: Annotated[float, Field(gt=0, le=30 * 86_400, allow_inf_nan=False)] | None = None
    overlap: Overlap = "allow"
    overlap_max: Annotated[int, Field(ge=1, le=400)] = 100
    catch_up: CatchUp = "latest"
    catch_up_window: Annotated[float, Field(ge=1, le=366 * 86_400)] = 86_400.0
    catch_up_rate: Annotated[float, Field(gt=0, le=1_000)] = 50.0
    on_unknown: OnUnknown = "retry"
    start_within: Deadline | None = None
    finish_within: Deadline | None = None
    expect_success_by: Deadline | None = None
    concurrency_key: Annotated[str, Field(max_length=256)] | None = None
    concurrency_limit: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rate_limit: Annotated[float, Field(ge=0.0001, le=100_000, allow_inf_nan=False)] | None = None
    owner: Annotated[str, Field(max_length=256)] | None = None
    subject: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    labels: dict[str, str] = Field(default_factory=dict)

    def parsed_schedule(self) -> Schedule:
        """The schedule as a value; read once for each definition."""
        known = cast("_Known | None", self.__dict__.get(_KNOWN))
        # A copy of the definition with another schedule has taken this over: it is told apart.
        if known is None or known[0] is not self.schedule:
            known = self._know(_parsed(json.dumps(self.schedule, sort_keys=True)))
        return known[1]

    @classmethod
    def of(cls, schedule: Schedule, **fields: Any) -> Self:
        """A definition of a schedule that is at hand, which then need not be read from its JSON."""
        definition = cls(schedule=schedule.to_json(), **fields)
        definition._know(schedule)
        return definition

    def alike(
        self, schedule: Schedule, stored: dict[str, Any], payload: dict[str, Any]
    ) -> "JobDefinition":
        """The definition that differs from this one in schedule and payload alone.

        Nothing is validated: ``stored`` is the schedule's JSON form, and ``payload`` was checked.
        """
        # What ``model_copy`` does, for a quarter of its time: a batch asks for it at each job.
        other = JobDefinition.__new__(JobDefinition)
        values = {**self.__dict__, "schedule": stored, "payload": payload}
        values[_KNOWN] = (stored, schedule)
        object.__setattr__(other, "__dict__", values)
        object.__setattr__(other, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        object.__setattr__(other, "__pydantic_extra__", None)
        object.__setattr__(other, "__pydantic_private__", None)
        return other

    def to_json(self) -> str:
        """Compact JSON; what has its default is left out."""
        return self.model_dump_json(exclude_defaults=True)

    def _know(self, schedule: Schedule) -> "_Known":
        # Beside the fields, not among them: it is no part of the value.
        beside = cast("dict[str, Any]", self.__dict__)
        known = beside[_KNOWN] = (self.schedule, schedule)
        return known


_KNOWN = "the parsed schedule"
_Known = tuple[dict[str, Any], Schedule]


@lru_cache(maxsize=16_384)
def _parsed(schedule: str) -> Schedule:
    return schedule_from_json(json.loads(schedule))
