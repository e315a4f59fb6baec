"""What travels through the ready queue: all that an ordinary run needs, and nothing to trust.

A message is a hint. It names the claim (occurrence and version) that it stands for, and the
worker's Attempted is accepted only while the log holds just that claim. What it says is to be done
is believed only if a scanner signed it; else that is read from the log. In a flood one message
carries many runs; each is recognised, attempted and finished on its own.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from horolog.application.tracing import RunTrace
from horolog.domain.definition import JobDefinition, OnUnknown
from horolog.domain.ids import OccurrenceKind
from horolog.domain.job import JobState
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.retry import Retry

MAX_RUNS = 50
"""The most runs in one message."""

MOST_RUNS_READ = 4 * MAX_RUNS
"""A message with more is nobody's of ours: a worker takes none of it in hand. Above what is
written, so that a later release may write more while this one still runs."""

MAX_MESSAGE_BYTES = 512 * 1024
"""A message is closed when it reaches this; the servers' own default limit is 1 MiB."""


class ReadyRun(BaseModel):
    """One claimed occurrence. ``version`` is that of its Claimed event.

    ``lost``: an attempt before this one was given up as lost, so its effect may have happened; the
    worker asks the handler's ``reconcile`` first, and follows ``on_unknown`` where that cannot say.
    After a person's replay that is "retry": whoever ordered the run has decided. ``since``, in a
    retry, is when the first attempt was claimed. ``claimed_in`` and ``ordered_in`` are the spans of
    the claim and of the command that ordered the run (``ordered_alone``: this run only).
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    occurrence: UUID
    job: UUID
    partition: int
    fire_time: datetime
    kind: OccurrenceKind = "schedule"
    version: int
    attempt: int
    failures: int = 0
    name: str
    queue: str = "default"
    payload: dict[str, Any] = Field(default_factory=dict)
    timeout: float | None = None
    retry: Retry = Retry()
    owner: str | None = None
    lost: bool = False
    since: datetime | None = None
    on_unknown: OnUnknown = "retry"
    definition_version: int | None = None
    claimed_in: str | None = None
    ordered_in: str | None = None
    ordered_alone: bool = False

    @property
    def message_id(self) -> str:
        """``occurrence:attempt``: the same for every copy of one claim, another for each retry."""
        return f"{self.occurrence}:{self.attempt}"

    def claimed(self) -> OccurrenceState:
        """The state that the log is in, if this run may still be attempted."""
        return OccurrenceState(
            self.occurrence,
            self.job,
            self.partition,
            self.fire_time,
            self.kind,
            self.version,
            "claimed",
            self.attempt,
            self.failures,
            definition_version=self.definition_version,
        )


class _Message(BaseModel):
    format: Literal[1] = 1
    runs: list[ReadyRun] = Field(max_length=MOST_RUNS_READ)


_messages = TypeAdapter(_Message)


def ready_run(
    job: JobState,
    claimed: OccurrenceState,
    *,
    lost: bool = False,
    replayed: bool = False,
    since: datetime | None = None,
    trace: RunTrace | None = None,
) -> ReadyRun:
    """The run of an occurrence that was just claimed, with the job as it is now.

    ``lost``, ``replayed`` and ``since`` are as in
    :class:`horolog.application.states.DueOccurrence`.
    """
    definition = job.definition
    ordered = None if trace is None else trace.ordered
    return ReadyRun(
        occurrence=claimed.id,
        job=job.id,
        partition=claimed.partition,
        fire_time=claimed.fire_time,
        kind=claimed.kind,
        version=claimed.version,
        attempt=claimed.attempt,
        failures=claimed.failures,
        name=definition.name,
        queue=definition.queue,
        payload=definition.payload,
        timeout=definition.timeout,
        retry=definition.retry,
        owner=definition.owner,
        lost=lost,
        since=since,
        on_unknown="retry" if replayed else definition.on_unknown,
        definition_version=claimed.definition_version,
        claimed_in=None if trace is None else trace.claimed_in,
        ordered_in=None if ordered is None else ordered.traceparent,
        ordered_alone=ordered is not None and ordered.alone,
    )


def encode(runs: Sequence[ReadyRun]) -> bytes:
    """A message of these runs."""
    return b'{"format":1,"runs":[%b]}' % b",".join(encode_run(run) for run in runs)


def encode_run(run: ReadyRun) -> bytes:
    """One run as it stands in a message."""
    return run.model_dump_json(exclude_defaults=True).encode()


class ClaimsEncoder:
    """Claimed runs as they stand in messages: what those of one definition share is encoded once.

    In a flood many jobs are alike (adapters give equal definitions as one object), and a message is
    mostly what their definition says.
    """

    def __init__(self) -> None:
        # By identity: a definition has no hash. It is kept here, so its identity stays its own.
        self._shared: dict[int, tuple[JobDefinition, bytes]] = {}

    def encode(
        self,
        job: JobState,
        claimed: OccurrenceState,
        *,
        lost: bool = False,
        replayed: bool = False,
        since: datetime | None = None,
        trace: RunTrace | None = None,
    ) -> bytes:
        """As :func:`encode_run` of :func:`ready_run` would give it, but for the order of names."""
        ordinary = claimed.kind == "schedule" and claimed.definition_version is None
        if not ordinary or claimed.failures or lost or replayed or since or trace:
            return encode_run(
                ready_run(job, claimed, lost=lost, replayed=replayed, since=since, trace=trace)
            )
        run = (
            f'"occurrence":"{claimed.id}","job":"{job.id}","partition":{claimed.partition},'
            f'"fire_time":"{claimed.fire_time.isoformat()}","version":{claimed.version},'
            f'"attempt":{claimed.attempt},'
        )
        return b"{%b%b" % (run.encode(), self._shared_part(job.definition))

    def _shared_part(self, definition: JobDefinition) -> bytes:
        """What the runs of a definition have in common, up to the closing brace."""
        known = self._shared.get(id(definition))
        if known is None:
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            known = self._shared[id(definition)] = (definition, _shared_part(definition))
        return known[1]


_MOST_SHARED = 1_024
"""Definitions whose part is remembered; where more of them take turns, little is shared."""


def _shared_part(definition: JobDefinition) -> bytes:
    shared = ReadyRun.model_construct(
        name=definition.name,
        queue=definition.queue,
        payload=definition.payload,
        timeout=definition.timeout,
        retry=definition.retry,
        owner=definition.owner,
        on_unknown=definition.on_unknown,
    )
    return shared.model_dump_json(exclude_defaults=True).encode()[1:]


_MAC_BYTES = 16
_MAC_AT = -(len(b',"mac":""}') + 2 * _MAC_BYTES)


def signed(data: bytes, key: bytes) -> bytes:
    """The message with a code that only who has the key can make: no other may be in its place."""
    return b'%b,"mac":"%b"}' % (data[:-1], _mac(data, key))


def is_signed(data: bytes, key: bytes) -> bool:
    """Whether the message is as somebody with the key has made it."""
    said = data[_MAC_AT:]
    if not (said.startswith(b',"mac":"') and said.endswith(b'"}')):
        return False
    return compare_digest(said[8:-2], _mac(data[:_MAC_AT] + b"}", key))


def _mac(data: bytes, key: bytes) -> bytes:
    digest = blake2b(data, key=key, digest_size=_MAC_BYTES, person=b"horolog-ready")
    return digest.hexdigest().encode()


def decode(data: bytes) -> list[ReadyRun]:
    """The runs of a message; ``ValueError`` says what is wrong with one that is not ours."""
    try:
        return _messages.validate_json(data).runs
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"not a ready message: {place or 'it'}: {first['msg']}") from error
