"""A network that a test may take away: a TCP proxy before a server, in a thread of its own.

    open      bytes pass
    cut       every connection is reset, and so is each new one
    stalled   bytes wait, and pass when the network is open again; new connections wait too
    silent    bytes vanish, in both directions, without a reset: what was open then never answers
              again (a firewall that forgot the connection); new connections are not answered

Nobody tells the ends of a stalled or silent connection anything: the kernel on this side goes on
acknowledging what they send.
"""

import asyncio
import socket
import struct
from collections.abc import Coroutine, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs, urlsplit

from horolog.interface.settings import Settings

State = Literal["open", "cut", "stalled", "silent"]
T = TypeVar("T")

_RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing is a reset."""


class _Connection:
    """A pair of streams. Once ``deaf``, it never passes anything again."""

    def __init__(self, ours: asyncio.StreamWriter, theirs: asyncio.StreamWriter) -> None:
        self.writers = (ours, theirs)
        self.deaf = False

    def reset(self) -> None:
        for writer in self.writers:
            raw: socket.socket = writer.get_extra_info("socket")
            with suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class Network:
    """Listens on ``port`` of loopback, and passes on to a Unix socket or another port."""

    def __init__(self, target: str | int) -> None:
        self._target = target
        self._state: State = "open"
        self._connections: set[_Connection] = set()
        self.port = 0
        self.accepted = 0
        """How many connections were made since the start."""

    def become(self, state: State) -> None:
        """From now on, for everything that is open and that comes."""
        self._run(self._become(state))

    # Everything below runs in the loop of the thread.

    def _run(self, doing: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(10)

    async def _become(self, state: State) -> None:
        self._state = state
        if state == "open":
            self._open.set()
        else:
            self._open.clear()
        for connection in list(self._connections):
            if state == "silent":
                connection.deaf = True
            elif state == "cut":
                connection.reset()

    async def _start(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._state == "cut":
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
            return
        if self._state == "silent":
            await _swallow(reader)
            writer.transport.abort()
            return
        await self._open.wait()
        try:
            if isinstance(self._target, str):
                theirs, writing = await asyncio.open_unix_connection(self._target)
            else:
                theirs, writing = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, writing)
        self._connections.add(connection)
        try:
            ways = [self._pass(connection, reader, writing), self._pass(connection, theirs, writer)]
            await asyncio.gather(*ways)
        except asyncio.CancelledError:
            return  # the whole network ends; the task of a server's connection is nobody's to await
        finally:
            connection.reset()
            self._connections.discard(connection)

    async def _pass(
        self, connection: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if not connection.deaf:
                    await self._open.wait()
                if connection.deaf:
                    await _swallow(reader)
                    break
                writer.write(data)
                await writer.drain()
        if not connection.deaf:
            connection.reset()

    async def _stop(self) -> None:
        await self._become("cut")
        self._server.close()

    @contextmanager
    def listening(self) -> Generator["Network"]:
        self._loop = asyncio.new_event_loop()
        thread = Thread(target=self._loop.run_forever, name="network", daemon=True)
        thread.start()
        try:
            self._run(self._start())
            yield self
        finally:
            self._run(self._stop())
            self._run(_end_of_others())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(5)
            self._loop.close()


async def _swallow(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(65_536):
            pass


async def _end_of_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@dataclass
class Networks:
    """Two networks, and the environment of a process that lives behind them."""

    postgres: Network
    nats: Network
    place: dict[str, str]

    def of(self, server: str) -> list[Network]:
        return [
            network
            for name, network in (("postgres", self.postgres), ("nats", self.nats))
            if server in (name, "both")
        ]

    def become(self, state: State, server: str) -> None:
        for network in self.of(server):
            network.become(state)

    def accepted(self, server: str) -> int:
        """The fewest connections that any of them has seen."""
        return min(network.accepted for network in self.of(server))


@contextmanager
def networks_before(settings: Settings) -> Generator[Networks]:
    """Networks before the two embedded servers of these settings."""
    postgres, nats = urlsplit(settings.database_url()), urlsplit(settings.nats_url())
    where = parse_qs(postgres.query)
    assert nats.port is not None
    with ExitStack() as stack:
        to_postgres = stack.enter_context(
            Network(f"{where['host'][0]}/.s.PGSQL.{where['port'][0]}").listening()
        )
        to_nats = stack.enter_context(Network(nats.port).listening())
        place = {
            "HOROLOG_DATABASE_URL": f"postgresql://{postgres.username}@127.0.0.1:{to_postgres.port}"
            f"{postgres.path}",
            "HOROLOG_NATS_URL": f"nats://{nats.username}:{nats.password}@127.0.0.1:{to_nats.port}",
        }
        yield Networks(to_postgres, to_nats, place)
