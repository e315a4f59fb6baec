"""Listening for news (what comes due soon, who is to stop): a connection and a daemon thread of its
own.

A connection that broke is made again, with growing pauses; whoever hears is told each time that it
begins anew, for what was told meanwhile was told to nobody. Silence is no proof of life: when
nothing was heard for a while, the server is asked for a word.
"""

import asyncio
import contextlib
from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

from psycopg import sql

from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.postgres.database import Database

_LOOK_S = 1.0
"""How often the thread looks whether it should end."""

_QUIET_S = 15.0
"""How long nothing may be heard before the server is asked, and how long its answer may take.
Shorter: a connection that swallows everything is noticed sooner, with more questions while idle."""

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0


class PostgresDueNews:
    """As :class:`horolog.application.scanner.news.HearsNews` promises, of one of the channels."""

    def __init__(
        self, database: Database, channel: str = "due", *, quiet_s: float = _QUIET_S
    ) -> None:
        self._database = database
        self._quiet_s = quiet_s
        self._channel = sql.Identifier(f"{database.namespace}_{channel}")
        self._name = f"{channel}-news"

    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        loop = asyncio.get_running_loop()
        ended = Event()

        def call(function: Callable[..., None], *args: str) -> None:
            # The loop may be closed by now; then nobody wants to know.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(function, *args)

        thread = Thread(
            target=self._work, args=(call, heard, connected, ended), name=self._name, daemon=True
        )
        thread.start()
        try:
            await stop.wait()
        finally:
            ended.set()

    def _work(
        self,
        call: Callable[..., None],
        heard: Callable[[str], None],
        connected: Callable[[], None],
        ended: Event,
    ) -> None:
        pause_s = _FIRST_PAUSE_S
        while not ended.is_set():
            try:
                with self._database.session() as connection:
                    connection.execute(sql.SQL("LISTEN {}").format(self._channel))
                    call(connected)
                    pause_s = _FIRST_PAUSE_S
                    connection.answer_s = self._quiet_s
                    heard_at = monotonic()
                    while not ended.is_set():
                        if monotonic() - heard_at > self._quiet_s:
                            connection.execute("SELECT")
                            heard_at = monotonic()
                        for notification in connection.notifies(timeout=_LOOK_S):
                            heard_at = monotonic()
                            call(heard, notification.payload)
                            if ended.is_set():
                                break
            except StoreUnavailable:
                ended.wait(pause_s)
                pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)
