"""Users with what `horolog roles --nats` prints: each process works, and can do nothing else."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import nats.errors
import pytest
from nats.aio.client import Client
from tests.infrastructure.nats.conftest import Starts

from horolog.application.scanner.outbox import Message, Pending
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.nats.connection import connect, disconnect
from horolog.infrastructure.nats.health import NatsHealth
from horolog.infrastructure.nats.permissions import KINDS, Kind, configuration, inbox
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.ready_source import NatsReadySource


class Server:
    """A server with the users of two namespaces, ``a`` and ``b``."""

    def __init__(self, starts: Starts) -> None:
        first, second = (configuration(name, name, ("alerts.>",)) for name in "ab")
        users = first.removesuffix("  ]\n}") + second.partition("users = [\n")[2]
        secrets = {f"{n}_{kind}_password".upper(): f"pw-{n}-{kind}" for n in "ab" for kind in KINDS}
        self.port = starts(users, secrets)

    def url(self, kind: str, namespace: str = "a") -> str:
        return f"nats://{namespace}_{kind}:pw-{namespace}-{kind}@127.0.0.1:{self.port}"

    @asynccontextmanager
    async def as_(self, kind: Kind, namespace: str = "a") -> AsyncGenerator[Client]:
        client, _ = await connect(
            self.url(kind, namespace), inbox=inbox(namespace, kind), request_timeout_s=1
        )
        yield client
        await disconnect(client)


@pytest.fixture
async def server(starts: Starts) -> Server:
    server = Server(starts)
    async with asyncio.timeout(20):
        while True:
            try:
                async with server.as_("auditor"):
                    return server
            except QueueUnavailable as error:
                if "111" not in str(error):
                    raise
                await asyncio.sleep(0.05)


def message() -> Message:
    run = Pending(uuid4(), 1, "default", b"hello", None)
    return Message("default", run.message_id, [run])


async def test_each_process_works_with_its_user(server: Server) -> None:
    queue = NatsReadyQueue(server.url("scanner"), "a", timeout_s=2)
    source = NatsReadySource(server.url("worker"), "a", None)
    health = NatsHealth(server.url("auditor"), "a")
    try:
        [receipt] = await queue.publish([message()])
        assert receipt.answer == "stored", receipt
        assert receipt.place is not None
        assert await queue.holds([receipt.place]) == [True]
        await source.start()
        async with asyncio.timeout(20):
            [taken] = await source.pull(1)
        assert b"hello" in taken.data
        assert (await health.queue_health()).queues[0].held == 1
        await source.close()
        assert [one.queue for one in (await health.queue_health()).queues] == ["default"]
    finally:
        await queue.close()
        await source.close()


async def refused(client: Client, doing: str, patience_s: float = 5) -> bool:
    """Whether the server says no; ``doing`` is `pub SUBJECT` or `sub SUBJECT`."""
    said: list[str] = []
    told = asyncio.Event()

    async def note(error: Exception) -> None:
        said.append(str(error).lower())
        told.set()

    client._error_cb = note  # pyright: ignore[reportPrivateUsage]
    verb, _, subject = doing.partition(" ")
    if verb == "pub":
        await client.publish(subject, b"{}")
    else:
        await client.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]
    await client.flush()
    # The client tells of it in its own time.
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await told.wait()
    return any("permissions violation" in one for one in said)


FORBIDDEN = {
    "worker": [
        "pub a.ready.default", "pub $JS.API.STREAM.CREATE.a_ready",
        "pub $JS.API.STREAM.UPDATE.a_ready",
        "pub $JS.API.STREAM.DELETE.a_ready", "pub $JS.API.STREAM.PURGE.a_ready",
        "pub $JS.API.STREAM.MSG.GET.a_ready", "pub $JS.API.STREAM.MSG.DELETE.a_ready",
        "pub $JS.API.CONSUMER.DELETE.a_ready.default", "pub $JS.API.STREAM.CREATE.mine",
        "pub $JS.API.CONSUMER.CREATE.b_ready.x", "pub $JS.API.CONSUMER.MSG.NEXT.b_ready.default",
        "pub $JS.ACK.b_ready.default.1.1.1.1.0", "pub alerts.me", "pub anything",
        "sub >", "sub a.ready.>", "sub _INBOX.>", "sub _INBOX.a.scanner.>", "sub _INBOX.b.worker.>",
        "sub $JS.EVENT.>", "sub $JS.API.>",
    ],
    "scanner": [
        "pub $JS.ACK.a_ready.default.1.1.1.1.0", "pub $JS.API.CONSUMER.MSG.NEXT.a_ready.default",
        "pub $JS.API.STREAM.PURGE.a_ready", "pub b.ready.default",
        "pub $JS.API.STREAM.DELETE.b_ready",
        "sub >", "sub _INBOX.a.worker.>", "sub a.ready.>",
    ],
    "auditor": [
        "pub a.ready.default", "pub $JS.API.STREAM.DELETE.a_ready", "pub alerts.me",
        "pub $JS.API.CONSUMER.MSG.NEXT.a_ready.default", "pub $JS.API.STREAM.MSG.GET.a_ready",
        "pub $JS.API.CONSUMER.CREATE.a_ready.x", "pub $JS.API.STREAM.INFO.b_ready",
        "pub $JS.API.STREAM.NAMES", "sub >", "sub _INBOX.a.worker.>",
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_user_does_not_need_is_refused(server: Server, kind: Kind) -> None:
    async with server.as_(kind) as client:
        allowed = [doing for doing in FORBIDDEN[kind] if not await refused(client, doing)]
    assert allowed == []


async def test_a_scanner_publishes_the_alerts_that_were_named(server: Server) -> None:
    async with server.as_("scanner") as client:
        assert not await refused(client, "pub alerts.team", 0.1)


async def test_a_stranger_is_not_let_in(server: Server) -> None:
    with pytest.raises((QueueUnavailable, nats.errors.Error)):
        await connect(f"nats://127.0.0.1:{server.port}")
