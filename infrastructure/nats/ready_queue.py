"""The ready queue on JetStream, as the scanner uses it: publish, confirm, look, scan.

The connection is made when it is needed and heals by itself; a client that the server closed for
good is replaced. While there is none, every call says so at once instead of filling a buffer.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import cast

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from horolog.application.ready import signed
from horolog.application.scanner.headroom import Depth
from horolog.application.scanner.looking import Held, QueueState
from horolog.application.scanner.outbox import Message
from horolog.application.scanner.publishing import Receipt
from horolog.application.scanner.sent import Place
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.nats.connection import connect, disconnect, translated
from horolog.infrastructure.nats.permissions import inbox
from horolog.infrastructure.nats.pipeline import Answer, Outgoing, Pipeline
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings, StreamState

AT_ONCE = 64
"""Requests that wait for their answers at the same time."""

_MESSAGE_ID = "Nats-Msg-Id"


class NatsReadyQueue:
    """As :class:`SeesQueue` and :class:`SeesDepths` promise; for one event loop."""

    def __init__(
        self,
        url: str,
        namespace: str,
        *,
        settings: StreamSettings | None = None,
        timeout_s: float = 5.0,
        silence_s: float = 30.0,
        key: bytes | None = None,
    ) -> None:
        """``key`` signs what is published, so that workers believe it."""
        self.key = key
        self._url = url
        self._namespace = namespace
        self._settings = settings
        self._timeout_s = timeout_s
        self._silence_s = silence_s
        self._connecting = asyncio.Lock()
        self._client: Client | None = None
        self._stream: ReadyStream | None = None
        self._pipeline: Pipeline | None = None
        self._life: str | None = None
        self._published_to: set[str] = set()
        self._made: set[str] = set()

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        stream = await self._ready()
        assert self._pipeline is not None
        pipeline = self._pipeline
        queues = {message.queue for message in messages}
        self._published_to |= queues
        for queue in queues - self._made:
            await stream.ensure_queue(queue, keep=True)
            self._made.add(queue)
        life = self._life or await self._look(stream)
        outgoing = [
            Outgoing(
                stream.subject(message.queue),
                message.message_id,
                message.data if self.key is None else signed(message.data, self.key),
                message.traceparent,
            )
            for message in messages
        ]
        answers = await pipeline.publish(outgoing, self._timeout_s)
        if any(answer.no_stream for answer in answers):
            self._forget()
        elif any(answer.unanswered for answer in answers):
            with suppress(QueueUnavailable):
                if await stream.drop_if_lost():
                    self._forget()
        return [
            _receipt(answer, life, message.message_id)
            for answer, message in zip(answers, messages, strict=True)
        ]

    async def holds(self, places: Sequence[Place]) -> list[bool]:
        stream = await self._ready()
        life = self._life or await self._look(stream)
        held: list[bool] = []
        for start in range(0, len(places), AT_ONCE):
            part = places[start : start + AT_ONCE]
            held += await asyncio.gather(*(self._holds(stream, life, place) for place in part))
        return held

    async def look(self) -> QueueState:
        stream = await self._ready()
        state = await self._ensured(stream)
        for queue in self._published_to.difference(await stream.queues()):
            await stream.ensure_queue(queue, keep=True)
        return QueueState(self._note(state), state.first_seq, state.last_seq)

    async def depths(self, queues: Collection[str]) -> dict[str, Depth]:
        stream = await self._ready()
        answers = await asyncio.gather(*(stream.depth(queue) for queue in queues))
        return dict(zip(queues, answers, strict=True))

    async def contents(self, life: str, first_seq: int, count: int) -> list[Held]:
        stream = await self._ready()
        found: list[Held] = []
        for start in range(first_seq, first_seq + count, AT_ONCE):
            numbers = range(start, min(start + AT_ONCE, first_seq + count))
            answers = await asyncio.gather(*(self._message(stream, seq) for seq in numbers))
            for seq, answer in zip(numbers, answers, strict=True):
                if answer is not None:
                    message_id, data = answer
                    found.append(Held(Place(life, seq, message_id), data))
        return found

    async def close(self) -> None:
        client, self._client, self._stream = self._client, None, None
        if client is not None:
            await disconnect(client)

    async def _ready(self) -> ReadyStream:
        """The stream over a live connection, or ``QueueUnavailable`` at once."""
        async with self._connecting:
            if self._client is None or self._client.is_closed or self._stream is None:
                await self.close()
                client, jetstream = await connect(
                    self._url,
                    name=f"horolog scanner {self._namespace}",
                    inbox=inbox(self._namespace, "scanner"),
                    connect_timeout_s=self._timeout_s,
                    request_timeout_s=self._timeout_s,
                    silence_s=self._silence_s,
                )
                self._client = client
                self._pipeline = Pipeline(client)
                self._stream = ReadyStream(jetstream, self._namespace, self._settings)
                self._forget()
        if not self._client.is_connected:
            raise QueueUnavailable("NATS is away: the connection is being made again")
        return self._stream

    async def _look(self, stream: ReadyStream) -> str:
        return self._note(await self._ensured(stream))

    async def _ensured(self, stream: ReadyStream) -> StreamState:
        state = await stream.state() or await stream.ensure()
        if _life(state) != self._life:
            await stream.replicate()
        return state

    def _note(self, state: StreamState) -> str:
        """This life of the stream; with a new one, nothing that was made in it is known."""
        life = _life(state)
        if life != self._life:
            self._forget()
            self._life = life
        return life

    def _forget(self) -> None:
        self._life = None
        self._made = set()

    async def _holds(self, stream: ReadyStream, life: str, place: Place) -> bool:
        if place.life != life:
            return False
        answer = await self._message(stream, place.seq)
        return answer is not None and answer[0] == place.message_id

    async def _message(self, stream: ReadyStream, seq: int) -> tuple[str, bytes] | None:
        """The id and the data of the message with this number; ``None`` where there is none."""
        with translated(f"reading message {seq} of {stream.name}"):
            try:
                message = await stream.jetstream.get_msg(stream.name, seq=seq)
            except NotFoundError:
                return None
        headers = cast("dict[str, str]", message.headers or {})  # pyright: ignore[reportUnknownMemberType]
        return headers.get(_MESSAGE_ID, ""), message.data or b""


def _receipt(answer: Answer, life: str, message_id: str) -> Receipt:
    if answer.seq:
        place = Place(life, answer.seq, message_id)
        return Receipt("duplicate" if answer.duplicate else "stored", place)
    if answer.too_large:
        return Receipt("too_large", detail=answer.error)
    if answer.error and not answer.no_stream:
        return Receipt("refused", detail=answer.error)
    return Receipt("unknown", detail=answer.error or answer.unanswered)


def _life(state: StreamState) -> str:
    return "" if state.created is None else state.created.isoformat()
