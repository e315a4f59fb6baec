"""The stream of a namespace: a work queue on disk, with one durable pull consumer for each queue.

    stream    <namespace>_ready    subjects <namespace>.ready.*      an acknowledged message goes
    consumer  <queue>              subject  <namespace>.ready.<queue>

Full means refused (discard new), never the oldest forgotten: the scanner waits and tries again.
Everything here is idempotent and safe from many processes at once, and makes anew what somebody
deleted: an operator's `nats stream rm`, or a store directory that is gone, costs only time.
"""

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
)
from nats.js.errors import APIError, NotFoundError, ServerError
from pydantic import BaseModel, ConfigDict, Field

from horolog.application.scanner.headroom import Depth
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.nats.connection import one_line, translated

log = logging.getLogger("horolog.queue")

_NAME_IN_USE = 10058
_CONSUMER_IS_THERE = 10148
"""With other settings than those that were asked for."""

_NEVER = frozenset({_NAME_IN_USE, 10052, 10065})
"""Another stream's: its name, a configuration that cannot become ours, its subjects."""

_NO_CLUSTER = 10074

_FILES_GONE = "no such file or directory"
"""What a running server says of a stream whose directory was deleted under it."""


class StreamSettings(BaseModel):
    """The bounds of the ready queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_messages: Annotated[int, Field(ge=1)] = 500_000
    """A message holds 1 to 50 runs. Fewer: claiming pauses earlier when workers are away. More: a
    longer wait in the queue instead of in the index, and more disk."""

    max_bytes: Annotated[int, Field(ge=1)] | None = None
    """JetStream reserves this much disk for the stream; None leaves it to the account's limit."""

    duplicate_window_s: Annotated[float, Field(ge=0.1)] = 20.0
    """How long JetStream recognises a repeated message id. Shorter than the claim window, so that
    what is published again after it is not swallowed; longer than a publish and its repetition."""

    ack_wait_s: Annotated[float, Field(ge=0.1)] = 30.0
    """A delivery that nobody acknowledged or extended is delivered again after this. Shorter: a
    dead worker's messages are back earlier. Longer: a worker may stall longer unpunished."""

    max_ack_pending: Annotated[int, Field(ge=1)] = 20_000
    """Messages that all workers of a queue may hold at once: far above their slots, or delivery
    stops while some of them hang."""

    replicas: Annotated[int, Field(ge=1, le=5)] | None = None
    """Copies of the stream in a NATS cluster. None: one when it is made, and whatever an operator
    makes of it."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """The stream as it is: ``created`` tells one life of it from the next."""

    created: datetime | None
    messages: int
    first_seq: int
    last_seq: int


class ReadyStream:
    """The stream of one namespace. Every call may raise ``QueueUnavailable``."""

    def __init__(
        self,
        jetstream: JetStreamContext,
        namespace: str,
        settings: StreamSettings | None = None,
    ) -> None:
        self.jetstream = jetstream
        self.namespace = namespace
        self.name = f"{namespace}_ready"
        self.settings = settings or StreamSettings()

    def subject(self, queue: str) -> str:
        return f"{self.namespace}.ready.{queue}"

    async def ensure(self) -> StreamState:
        """Makes the stream if it is not there, brings its bounds to the settings, and describes it.

        Raises ``InvalidSetting`` where a stream of this name exists that cannot be ours.
        """
        config = self._stream_config()
        with translated(f"making stream {self.name}"):
            try:
                return _state(await self.jetstream.add_stream(config))  # pyright: ignore[reportUnknownMemberType]
            except APIError as error:
                if error.err_code != _NAME_IN_USE:
                    raise self._refused(error) from error
            try:
                return _state(await self.jetstream.update_stream(config))  # pyright: ignore[reportUnknownMemberType]
            except NotFoundError:
                return _state(await self.jetstream.add_stream(config))  # pyright: ignore[reportUnknownMemberType]
            except APIError as error:
                raise self._refused(error) from error

    async def replicate(self) -> None:
        """Gives a stream that is there as many copies as the settings state, if they do.

        Whoever came first made it, perhaps a worker, who knows nothing of copies.
        """
        if self.settings.replicas is None:
            return
        with translated(f"replicating stream {self.name}"):
            try:
                config = (await self.jetstream.stream_info(self.name)).config
                if config.num_replicas == self.settings.replicas:
                    return
                config.num_replicas = self.settings.replicas
                await self.jetstream.update_stream(config)  # pyright: ignore[reportUnknownMemberType]
            except NotFoundError:
                return
            except APIError as error:
                raise self._refused(error) from error

    def _refused(self, error: APIError) -> Exception:
        """The error to raise: only what time will not heal is a wrong setting."""
        if error.err_code == _NO_CLUSTER:
            return InvalidSetting(
                f"stream_replicas={self.settings.replicas} needs a NATS cluster, and this server is"
                " alone: leave it out, or name the servers of a cluster in HOROLOG_NATS_URL"
            )
        if error.err_code not in _NEVER:
            return error
        return InvalidSetting(
            f"the stream {self.name} cannot be made a ready queue of this release"
            f" ({one_line(error)}): delete what stands in its way (`nats stream rm {self.name}`;"
            " the scanner publishes again what was in it), or use another namespace"
        )

    async def ensure_queue(self, queue: str, *, keep: bool = False) -> None:
        """Makes the consumer of a queue, and the stream too, if they are not there.

        One that is there gets this process's settings, unless it is to ``keep`` its own: then the
        server itself makes the difference, for between our look and our word another process may
        have made it with settings that matter to it.
        """
        consumer = self._consumer_config(queue)
        with translated(f"making consumer {queue} of {self.name}"):
            if await self._writes(consumer, keep=keep):
                return
        await self.ensure()
        with translated(f"making consumer {queue} of {self.name}"):
            await self._write(consumer, keep=keep)

    async def drop_if_lost(self) -> bool:
        """Whether the stream's files were gone, so that it was deleted, to be made anew.

        A server whose store directory was deleted under it knows the stream from memory, takes
        messages for a while, and then no longer answers. It tells when it is to write a consumer:
        one is written as it is.
        """
        for queue in (await self.queues())[:1]:
            with translated(f"looking for consumer {queue} of {self.name}"):
                try:
                    info = await self.jetstream.consumer_info(self.name, queue)
                except NotFoundError:
                    return False
                return not await self._writes(info.config)
        return False

    async def _writes(self, consumer: ConsumerConfig, *, keep: bool = False) -> bool:
        """Writes a consumer; ``False`` where there is no stream, or was none any more on disk."""
        try:
            await self._write(consumer, keep=keep)
        except NotFoundError:
            return False
        except ServerError as error:
            if _FILES_GONE not in (error.description or ""):
                raise
            log.warning("the files of stream %s are gone: it is made anew", self.name)
            with suppress(NotFoundError):
                await self.jetstream.delete_stream(self.name)
            return False
        return True

    async def _write(self, consumer: ConsumerConfig, *, keep: bool) -> None:
        """Writes a consumer; one that is there is left as it is, where it is to be kept."""
        if not keep:
            await self.jetstream.add_consumer(self.name, consumer)  # pyright: ignore[reportUnknownMemberType]
            return
        subject = f"$JS.API.CONSUMER.CREATE.{self.name}.{consumer.name}.{consumer.filter_subject}"
        # The client has no call that only creates.
        request = {"stream_name": self.name, "config": consumer.as_dict(), "action": "create"}
        try:
            await self.jetstream._api_request(  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
                subject,
                json.dumps(request).encode(),
                timeout=self.jetstream._timeout,  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            )
        except APIError as error:
            if error.err_code != _CONSUMER_IS_THERE:
                raise

    async def has_queue(self, queue: str) -> bool:
        """Whether the consumer exists: a pull on a missing one only times out."""
        with translated(f"looking for consumer {queue} of {self.name}"):
            try:
                await self.jetstream.consumer_info(self.name, queue)
            except NotFoundError:
                return False
            return True

    async def depth(self, queue: str) -> Depth:
        """What was not delivered yet and what ever was; a queue that is not there is empty."""
        with translated(f"looking at consumer {queue} of {self.name}"):
            try:
                info = await self.jetstream.consumer_info(self.name, queue)
            except NotFoundError:
                return Depth(0, 0)
        delivered = 0 if info.delivered is None else info.delivered.consumer_seq
        return Depth(info.num_pending or 0, delivered)

    async def queues(self) -> list[str]:
        """The queues that something was ever published to, sorted; none if there is no stream."""
        names: list[str] = []
        with translated(f"listing the consumers of {self.name}"):
            while True:
                try:
                    page = await self.jetstream.consumers_info(self.name, offset=len(names))
                except NotFoundError:
                    return []
                names.extend(info.name for info in page)
                if len(page) < 256:
                    return sorted(names)

    async def state(self) -> StreamState | None:
        """The stream as it is now; ``None`` if it is not there."""
        with translated(f"looking at stream {self.name}"):
            try:
                return _state(await self.jetstream.stream_info(self.name))
            except NotFoundError:
                return None

    def _stream_config(self) -> StreamConfig:
        settings = self.settings
        return StreamConfig(
            name=self.name,
            description="Occurrences that are due now. A hint: the log in Postgres is the truth.",
            subjects=[f"{self.namespace}.ready.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            discard=DiscardPolicy.NEW,
            storage=StorageType.FILE,
            max_msgs=settings.max_messages,
            max_bytes=-1 if settings.max_bytes is None else settings.max_bytes,
            duplicate_window=settings.duplicate_window_s,
            num_replicas=settings.replicas or 1,
        )

    def _consumer_config(self, queue: str) -> ConsumerConfig:
        return ConsumerConfig(
            name=queue,
            durable_name=queue,
            filter_subject=self.subject(queue),
            deliver_policy=DeliverPolicy.ALL,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self.settings.ack_wait_s,
            # Giving up is the log's decision, never the queue's.
            max_deliver=-1,
            max_ack_pending=self.settings.max_ack_pending,
        )


def _state(info: StreamInfo) -> StreamState:
    state = info.state
    # A stream that never held anything says that it begins at 0; its first message will be 1.
    return StreamState(info.created, state.messages, max(1, state.first_seq), state.last_seq)
