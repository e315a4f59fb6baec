"""Taking from the ready queue: pulls on the consumers of one or several queues, as one source.

The client library's own ``fetch`` waits for a whole batch and tells a missing consumer from an
empty one only by silence. So the pull protocol is spoken here: one lingering request for each
queue, whose messages are handed on the moment they arrive, and whose endings are told apart:

    408, 404              nothing more came in time         ask again
    409 …, 503, silence   the consumer or stream is gone,   make it if it is missing, ask again
                          a limit, a server leaving     (at once, then at every look)

A connection that was lost is made again for ever; deliveries in its buffers come again.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from horolog.application.worker.held import ReadyMessage, Wanted, Word, as_many_as_there_are
from horolog.domain.errors import HorologError, InvalidSetting
from horolog.infrastructure.nats.connection import connect, disconnect
from horolog.infrastructure.nats.permissions import inbox
from horolog.infrastructure.nats.stream import ReadyStream, StreamSettings

log = logging.getLogger("horolog.worker")

_LINGER_S = 5.0
"""How long a request waits at the server; the next follows at once."""

_SIGN_OF_LIFE_S = 1.0
"""How often the server says that a request still waits; twice nothing, and it is looked after."""

_TEND_S = 0.25
_DISCOVER_S = 2.0
_UNUSED_S = 1.0
"""A delivery that the worker has not taken from the buffer for so long is offered to others."""

_EMPTY = frozenset({"404", "408"})


class ServerTime:
    """The server's clock, as far as its messages tell: this machine's own may be wrong by hours.

    A message arrives after it was stored, so the clock shows at least what it showed then and the
    time since the arrival. Until a fresh message came the ages are too small, never too large.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._ahead_s = -inf

    def age_s(self, stored_at: float, arrived_at: float) -> float:
        """Seconds at least since the server stored what arrived here at ``arrived_at``
        (monotonic); ``stored_at`` is the server's stamp."""
        self._ahead_s = max(self._ahead_s, stored_at - arrived_at)
        return self._monotonic() + self._ahead_s - stored_at


class NatsMessage:
    """As :class:`horolog.application.worker.held.ReadyMessage` promises."""

    __slots__ = ("_message", "_source", "arrived_at")

    def __init__(self, message: Msg, source: "NatsReadySource", arrived_at: float) -> None:
        self._message = message
        self._source = source
        self.arrived_at = arrived_at

    @property
    def data(self) -> bytes:
        return self._message.data

    @property
    def age_s(self) -> float:
        stored_at = self._message.metadata.timestamp.timestamp()
        return self._source.server_time.age_s(stored_at, self.arrived_at)

    @property
    def traceparent(self) -> str | None:
        return (self._message.headers or {}).get("traceparent")

    def tell(self, word: Word) -> None:
        self._source.say(self._message.reply, _spoken(word))


@dataclass(slots=True)
class _Queue:
    """The pulls of one queue: ``expected`` is what the present request may still bring;
    ``mended_at`` is when its consumer was looked after."""

    name: str
    subscription: Subscription
    expected: int = 0
    heard_at: float = 0.0
    suspect: bool = False
    mended_at: float = -inf


class NatsReadySource:
    """As :class:`horolog.application.worker.held.PullsReady` promises.

    ``queues`` is what to take from; ``None`` is every queue of the namespace, those that appear
    later too. Starting raises ``InvalidSetting`` and ``QueueUnavailable``.
    """

    def __init__(
        self,
        url: str,
        namespace: str,
        queues: Sequence[str] | None,
        *,
        settings: StreamSettings | None = None,
    ) -> None:
        self._url = url
        self._namespace = namespace
        self._wanted_queues = None if queues is None else sorted(set(queues))
        self._settings = settings
        self._buffer: deque[NatsMessage] = deque()
        self._arrived = asyncio.Event()
        self._limit = 0
        self._wanted: Wanted = as_many_as_there_are
        self._queues: dict[str, _Queue] = {}
        self._words: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._client: Client | None = None
        self._stream: ReadyStream | None = None
        self.server_time = ServerTime(time.monotonic)

    async def start(self) -> None:
        """Connects, makes the named queues if they are missing, and begins to look after them."""
        await self._connect()
        await self._discover()
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._speak(), name="horolog-acks"),
            loop.create_task(self._tend(), name="horolog-queues"),
        ]

    @property
    def connected(self) -> bool:
        """Whether there is a live connection; from any thread."""
        return self._client is not None and self._client.is_connected

    async def pull(self, limit: int, wanted: Wanted = as_many_as_there_are) -> list[ReadyMessage]:
        self._limit = limit
        self._wanted = wanted
        try:
            while not self._buffer:
                self._arrived.clear()
                await self._ask_all()
                if not self._buffer:
                    await self._arrived.wait()
        finally:
            self._limit = 0
        taken: list[ReadyMessage] = [
            self._buffer.popleft() for _ in range(min(limit, len(self._buffer)))
        ]
        return taken

    def wants_more(self) -> None:
        self._arrived.set()

    def say(self, reply: str, word: bytes) -> None:
        """Sends a word about a delivery soon. One that is lost costs a redelivery."""
        self._words.put_nowait((reply, word))

    async def close(self) -> None:
        """Offers again what was not taken, sends what is to be said, and disconnects."""
        await _ended(self._tasks)
        client = self._client
        if client is None or client.is_closed:
            return
        with suppress(nats.errors.Error, OSError, TimeoutError):
            # Requests linger at the server: what it sends until it knows that we leave comes, too.
            async with asyncio.timeout(2):
                for queue in self._queues.values():
                    await queue.subscription.drain()
        while self._buffer:
            self._buffer.popleft().tell(Word("later"))
        with suppress(nats.errors.Error, OSError, TimeoutError):
            while not self._words.empty():
                await client.publish(*self._words.get_nowait())
            if client.is_connected:
                await client.flush(timeout=2)
        await disconnect(client)

    # The connection, and which queues there are.

    async def _connect(self) -> None:
        self._client, jetstream = await connect(
            self._url,
            name=f"horolog/{self._namespace}/worker",
            reconnected=self._reconnected,
            inbox=inbox(self._namespace, "worker"),
        )
        self._stream = ReadyStream(jetstream, self._namespace, self._settings)
        self._queues.clear()
        # Told at once of new queues and of deleted ones, where the account lets us hear of it.
        for word in ("CREATED", "DELETED"):
            subject = f"$JS.EVENT.ADVISORY.CONSUMER.{word}.{self._stream.name}.>"
            await self._client.subscribe(subject, cb=self._on_advisory)  # pyright: ignore[reportUnknownMemberType]

    async def _reconnected(self) -> None:
        """What was asked for over the old connection will not be answered."""
        for queue in self._queues.values():
            queue.expected = 0
            queue.suspect = True
        self._news.set()

    async def _on_advisory(self, message: Msg) -> None:
        name = message.subject.rpartition(".")[2]
        if ".DELETED." in message.subject and name in self._queues:
            self._queues[name].suspect = True
        self._news.set()

    async def _discover(self) -> None:
        assert self._stream is not None
        names = self._wanted_queues
        if names is None:
            names = await self._stream.queues()
        for name in names:
            if name not in self._queues:
                await self._open(name)

    async def _open(self, name: str) -> None:
        assert self._stream is not None
        assert self._client is not None
        # Also one that is there: a scanner made it, who knows nothing of this worker's ack wait.
        await self._stream.ensure_queue(name)

        async def arrived(message: Msg) -> None:
            self._on_message(self._queues[name], message)

        subscription = await self._client.subscribe(self._client.new_inbox(), cb=arrived)  # pyright: ignore[reportUnknownMemberType]
        self._queues[name] = _Queue(name, subscription)
        log.info("taking runs of queue %r", name)
        if self._limit:
            await self._ask(self._queues[name])

    # Requests and what comes back.

    async def _ask_all(self) -> None:
        for queue in list(self._queues.values()):
            if queue.expected <= 0 and not queue.suspect:
                await self._ask(queue)

    async def _ask(self, queue: _Queue) -> None:
        """Sends the request of a queue: what is wanted of it now, if anything is."""
        assert self._stream is not None
        assert self._client is not None
        batch = min(self._limit, self._wanted(queue.name))
        if batch <= 0:
            return
        request = {
            "batch": batch,
            "expires": int(_LINGER_S * 1e9),
            "idle_heartbeat": int(_SIGN_OF_LIFE_S * 1e9),
        }
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream.name}.{queue.name}"
        queue.expected = batch
        queue.heard_at = time.monotonic()
        try:
            await self._client.publish(
                subject, json.dumps(request).encode(), reply=queue.subscription.subject
            )
        except (nats.errors.Error, OSError):
            queue.expected = 0
            queue.suspect = True

    def _on_message(self, queue: _Queue, message: Msg) -> None:
        queue.heard_at = time.monotonic()
        status = message.headers.get("Status") if message.headers and not message.data else None
        if status is None:
            queue.expected -= 1
            self._buffer.append(NatsMessage(message, self, queue.heard_at))
            self._arrived.set()
        elif status == "100":
            return
        elif status in _EMPTY:
            queue.expected = 0
            self._arrived.set()
        else:
            assert message.headers is not None
            log.debug("queue %r: %s %s", queue.name, status, message.headers.get("Description"))
            queue.expected = 0
            queue.suspect = True
            if queue.heard_at - queue.mended_at >= _TEND_S:
                self._news.set()
            # Else it is refused although it was just looked after (a limit of the server's or of
            # the consumer's): at the next look, not as fast as the server can say no.

    # Looking after it.

    async def _tend(self) -> None:
        """Mends what is suspect, finds new queues, and gives back what is not used."""
        discovered_at = time.monotonic()
        reported = False
        while True:
            # Not with wait_for, which up to Python 3.11 may swallow the cancellation of a close.
            with suppress(TimeoutError):
                async with asyncio.timeout(_TEND_S):
                    await self._news.wait()
            told = self._news.is_set()
            self._news.clear()
            now = time.monotonic()
            try:
                await self._mend(now)
                if self._wanted_queues is None and (told or now - discovered_at >= _DISCOVER_S):
                    await self._discover()
                    discovered_at = now
                reported = False
            except InvalidSetting:
                raise
            except HorologError as error:
                if not reported:
                    log.warning("the ready queue is away: %s", error)
                reported = True
                await asyncio.sleep(_TEND_S)
            self._give_back_unused(now)

    async def _mend(self, now: float) -> None:
        assert self._client is not None
        if self._client.is_closed:
            await self._connect()
            await self._discover()
        for queue in list(self._queues.values()):
            if queue.expected > 0 and now - queue.heard_at > 2 * _SIGN_OF_LIFE_S + _TEND_S:
                queue.suspect = True
            if not queue.suspect:
                continue
            assert self._stream is not None
            if not await self._stream.has_queue(queue.name):
                log.warning("the consumer of queue %r was gone and is made again", queue.name)
            # Somebody else may have been quicker, with an ack wait of theirs.
            await self._stream.ensure_queue(queue.name)
            queue.suspect = False
            queue.expected = 0
            queue.mended_at = time.monotonic()
        if self._limit:
            await self._ask_all()

    def _give_back_unused(self, now: float) -> None:
        while self._buffer and now - self._buffer[0].arrived_at > _UNUSED_S:
            self._buffer.popleft().tell(Word("later"))

    async def _speak(self) -> None:
        while True:
            reply, word = await self._words.get()
            assert self._client is not None
            with suppress(nats.errors.Error, OSError):
                await self._client.publish(reply, word)


async def _ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancels tasks until they have ended: the client waits with wait_for, which up to Python 3.11
    may swallow a cancellation."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_TEND_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def _spoken(word: Word) -> bytes:
    """A word in JetStream's language."""
    match word.kind:
        case "done":
            return b"+ACK"
        case "working":
            return b"+WPI"
        case "never":
            return b"+TERM"
        case _:
            if word.delay_s <= 0:
                return b"-NAK"
            return b'-NAK {"delay": %d}' % int(word.delay_s * 1e9)
