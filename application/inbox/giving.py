"""Giving a command within a transaction: look, decide on what would be, put down.

Two questions to the database, both asked on the client's own connection, so that the job that it
has registered a moment ago in the same transaction is there for its next command. Sync and async
drivers differ in their ``await`` only: the sequence is written once, as a generator that yields
questions and is sent their answers.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json

from horolog.application.commands.context import MAX_TRIES, Context, Entropy, too_busy
from horolog.application.inbox.carrying_out import carry_out
from horolog.application.inbox.given import AnyGiven, read_given
from horolog.application.inbox.imagined import Imagined, Order
from horolog.domain.definition import JobDefinition
from horolog.domain.errors import HorologError
from horolog.domain.ids import drawn_job_id
from horolog.domain.job import JobState, JobStatus
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.text import stated

_DRAWN_BYTES = 16
_NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Question:
    """A function of the namespace, which takes a text and returns a text or nothing."""

    function: str
    argument: str


Outcome = JobState | OccurrenceState
Giving = Generator[Question, str | None, Outcome]


class GivenFields(TypedDict):
    """What each command has; see :class:`Given`."""

    job_id: UUID
    given_at: datetime
    actor: str
    reason: str | None
    correlation: UUID
    traceparent: str | None


@dataclass(frozen=True, slots=True)
class Giver:
    """Who gives commands, and to which namespace."""

    namespace: str
    actor: str
    entropy: Entropy
    traceparent: str | None = None

    def give(
        self,
        job_id: UUID | None,
        make: Callable[[GivenFields], AnyGiven],
        *,
        reason: str | None = None,
        request_id: str | None = None,
    ) -> Giving:
        """The state that the command leads to; it is that as soon as the transaction is committed.

        ``job_id`` is drawn where there is none. Raises what the command raises, and
        ``VersionConflict`` where others always register the same key first.
        """
        correlation = UUID(bytes=self.entropy.draw(16), version=4)
        said = stated(reason)
        for _ in range(MAX_TRIES):
            look = yield from _look(job_id or _NOBODY, request_id)
            identity = job_id or drawn_job_id(look.now(), self.entropy.draw(_DRAWN_BYTES))
            given = make(
                {
                    "job_id": identity,
                    "given_at": look.now(),
                    "actor": self.actor,
                    "reason": said,
                    "correlation": correlation,
                    "traceparent": self.traceparent,
                }
            )
            imagined = look.imagined(identity, request_id)
            context = self._context(look, imagined)
            for earlier in look.pending:
                # What is refused by then is set aside when it is carried out.
                with suppress(HorologError, ValidationError):
                    carry_out(context, imagined, read_given(earlier))
            imagined.changed = False
            birth = imagined.job(identity) is None
            outcome = carry_out(context, imagined, given)
            if not imagined.changed or (yield from _put(context, given, birth=birth)):
                return outcome
        raise too_busy(f"job {job_id}")

    def _context(self, look: "_Look", imagined: Imagined) -> Context:
        return Context(
            log=imagined,
            states=imagined,
            clock=look,
            entropy=self.entropy,
            namespace=self.namespace,
            partitions=look.partitions,
            actor=self.actor,
        )


class _Triggered(BaseModel):
    occurrence: UUID
    fire_time: datetime


class _Look(BaseModel):
    """What ``inbox_look`` returns (migrations/0011)."""

    moment: datetime = Field(alias="now")
    partitions: int
    job: tuple[UUID, int, JobStatus, int, str, str | None, datetime | None, int] | None
    triggered: _Triggered | None
    pending: list[Any]

    def now(self) -> datetime:
        return self.moment.astimezone(UTC)

    def imagined(self, job_id: UUID, request_id: str | None) -> Imagined:
        """The job as the log has it, and the run that the request has ordered."""
        orders: dict[str, Order] = {}
        if self.triggered is not None and request_id is not None:
            orders[request_id] = Order(self.triggered.occurrence, self.triggered.fire_time)
        return Imagined(job_id, self._state(), self.now(), orders)

    def _state(self) -> JobState | None:
        if self.job is None:
            return None
        identity, version, status, partition, definition, key, fire, fires = self.job
        parsed = JobDefinition.model_validate_json(definition)
        return JobState(identity, version, status, partition, parsed, key, fire, fires)


def _look(job_id: UUID, request_id: str | None) -> Generator[Question, str | None, _Look]:
    asked = to_json({"job_id": job_id, "request_id": request_id}).decode()
    answer = yield Question("inbox_look", asked)
    assert answer is not None, "inbox_look always answers"
    return _Look.model_validate_json(answer)


def _put(
    context: Context, given: AnyGiven, *, birth: bool
) -> Generator[Question, str | None, bool]:
    """Whether it lies there now; a registration of the same key may have come first."""
    state = context.states.job(given.job_id)
    assert state is not None, "a command leaves its job"
    asked = {
        "partition": state.partition,
        "job_id": given.job_id,
        "birth": birth,
        "document": given.model_dump(mode="json", exclude_defaults=True)
        | {"command": given.command},
    }
    return (yield Question("inbox_put", to_json(asked).decode())) is not None
