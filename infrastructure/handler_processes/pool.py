"""The processes that a worker keeps for its handlers: started when needed, kept, killed at need.

How many there are at once is the worker's doing, whose slots let so many runs begin.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from typing import Any

from horolog.application.worker.processes import Place, ProcessDied
from horolog.infrastructure.handler_processes.framing import LENGTH, framed

START_S = 60.0
"""How long a process may take to start and to import the handler's module."""


class _Kept:
    """One process and the connection to it."""

    def __init__(
        self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.process = process
        self.reader = reader
        self.writer = writer

    async def ask(self, document: dict[str, Any]) -> None:
        self.writer.write(framed(document))
        await self.writer.drain()

    async def answer(self) -> dict[str, Any]:
        head = await self.reader.readexactly(LENGTH.size)
        return json.loads(await self.reader.readexactly(LENGTH.unpack(head)[0]))

    def kill(self) -> None:
        """With all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.writer.close()

    async def ended(self) -> str:
        """How it ended, in words; it has closed its connection, so it will have soon."""
        try:
            async with asyncio.timeout(5):
                status = await self.process.wait()
        except TimeoutError:
            self.kill()
            status = await self.process.wait()
        self.kill()  # what it left running
        if status >= 0:
            return f"it exited with status {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = " (out of memory, or killed by somebody)" if -status == signal.SIGKILL else ""
        return f"it was ended by {name}{hint}"


class HandlerProcesses:
    """As :class:`horolog.application.worker.processes.RunsInProcess` promises."""

    def __init__(self) -> None:
        self._idle: list[_Kept] = []
        self._all: set[_Kept] = set()

    async def run(
        self, place: Place, order: dict[str, Any], begun: Callable[[], None]
    ) -> dict[str, Any]:
        order = order | {"module": place.module, "path": place.path, "qualname": place.qualname}
        kept = await self._loaded(order)
        try:
            begun()
            answer = await kept.answer()
        except (EOFError, ConnectionError) as error:
            self._all.discard(kept)
            raise ProcessDied(f"the handler's process died: {await kept.ended()}") from error
        except BaseException:
            self._end(kept)
            raise
        self._idle.append(kept)
        return answer

    async def close(self) -> None:
        """Kills them all, and returns when they are gone."""
        ending = list(self._all)
        for kept in ending:
            self._end(kept)
        self._idle.clear()
        for kept in ending:
            await kept.process.wait()
            with contextlib.suppress(OSError):
                await kept.writer.wait_closed()

    async def _loaded(self, order: dict[str, Any]) -> _Kept:
        """A process that has the order and found its handler. One that died while it was idle is
        replaced: nothing had begun there."""
        while self._idle:
            kept = self._idle.pop()
            with contextlib.suppress(ProcessDied):
                return await self._load(kept, order)
        return await self._load(await self._start(), order)

    async def _load(self, kept: _Kept, order: dict[str, Any]) -> _Kept:
        try:
            async with asyncio.timeout(START_S):
                await kept.ask(order)
                answer = await kept.answer()
        except (EOFError, ConnectionError) as error:
            self._all.discard(kept)
            raise ProcessDied(
                f"the handler's process died before it began: {await kept.ended()}"
            ) from error
        except TimeoutError as error:
            self._end(kept)
            raise ProcessDied(
                f"the handler's process did not import its module within {START_S:g} s"
            ) from error
        except BaseException:
            self._end(kept)
            raise
        if "unloadable" in answer:
            self._idle.append(kept)
            raise ProcessDied(f"the handler's process cannot find it: {answer['unloadable']}")
        return kept

    async def _start(self) -> _Kept:
        ours, theirs = socket.socketpair()
        program = [
            sys.executable, "-m", "horolog.infrastructure.handler_processes.child",
            str(theirs.fileno()), json.dumps(sys.path),
        ]  # fmt: skip
        try:
            reader, writer = await asyncio.open_connection(sock=ours)
            try:
                process = await asyncio.create_subprocess_exec(
                    *program, stdin=DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
                )
            except BaseException:
                writer.close()
                raise
        finally:
            theirs.close()
        kept = _Kept(process, reader, writer)
        self._all.add(kept)
        return kept

    def _end(self, kept: _Kept) -> None:
        self._all.discard(kept)
        kept.kill()
