"""What comes out, as OpenAPI states it: the answers of the scheduler, whose JSON form is their own.

These models only describe. An answer is written as it says itself (``to_dict``), and the tests hold
the one against the other.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    """``next`` is the address of the page that follows, ``null`` on the last one."""

    items: list[T]
    next: str | None


class Event(BaseModel):
    """An event of the log; ``data`` is what it states."""

    position: int
    recorded_at: datetime
    stream: UUID
    version: int
    topic: str
    actor: str
    reason: str | None
    correlation: UUID
    causation: str | None
    data: dict[str, Any]


class LogPage(Page[Event]):
    """``position`` is how far this page went: give it as ``after`` to wait for what comes."""

    position: int


class Fire(BaseModel):
    """A fire time: the instant, the local time, and what a clock change did to it."""

    model_config = ConfigDict(extra="allow")

    at: datetime
    local: Annotated[str, WithJsonSchema({"type": "string"})]


class Fires(BaseModel):
    items: list[Fire]


class Comparison(BaseModel):
    """Fire times kept, added and removed."""

    model_config = ConfigDict(extra="allow")


class Many(BaseModel, Generic[T]):
    items: list[T]


class Count(BaseModel):
    """How many, or how many it would be."""

    count: int


class Backfilled(Count):
    """With ``dry_run`` also the runs that would be ordered."""

    planned: list[dict[str, Any]] | None = None


class Position(BaseModel):
    """How far the log has come."""

    position: int


class Health(BaseModel):
    """As ``horolog doctor --json``."""

    healthy: bool
    store: dict[str, Any] | None
    queue: dict[str, Any] | None
    findings: list[dict[str, Any]]


class Partition(BaseModel):
    """A partition, and who leads it."""

    partition: int
    instance: str | None
    token: int | None
    lease_s: float | None
    published: int
    fires: int


class ProjectionsAnswer(BaseModel):
    """``status`` as ``horolog projection status --json``; ``work`` is what this server runs or ran
    last."""

    status: dict[str, Any]
    work: dict[str, Any] | None


class WorkAnswer(BaseModel):
    """What has begun; ``GET /api/v1/projections`` says how far it is."""

    model_config = ConfigDict(extra="allow")

    state: str
    share: float


class ProblemAnswer(BaseModel):
    """A refusal (RFC 9457). ``type`` is what programs tell refusals apart by; ``error`` is the name
    in the Python API, where it has one."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[str, Field(examples=["urn:horolog:problem:unknown-job"])]
    title: str
    status: int
    detail: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {
        "model": ProblemAnswer,
        "description": description,
        "content": {"application/problem+json": {}},
    }
    for status, description in (
        (400, "The request cannot be read."),
        (401, "No account, or none has this token."),
        (403, "The account may only look, or a page of another site asks."),
        (404, "There is no such job or occurrence."),
        (409, "The key, or the state, does not permit it."),
        (412, "Somebody else changed it first."),
        (413, "The body is too large."),
        (415, "The body is not JSON."),
        (421, "The server has another name."),
        (422, "A parameter, a schedule, a payload or a policy is wrong."),
        (500, "An event that this release cannot read, or a fault of this server."),
        (503, "Postgres, or NATS, is away; try again."),
    )
}
