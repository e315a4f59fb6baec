"""The scheduler's public face: what a client asks, and gets.

A thin layer, in parts by subject (:mod:`horolog.interface.client`): each method turns what users
write (ids as text, keys, keywords) into a command or a query of the application, and its state
into an answer. A client needs Postgres alone; what it asked for is kept when the call returns, and
it may walk away.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from horolog.application.commands.at_once import AtOnce
from horolog.application.privacy.ports import NoKeyring
from horolog.application.privacy.reading_out import ReadingOut
from horolog.domain.errors import NotAllowed
from horolog.domain.text import storable
from horolog.interface.client.connected import Answer, Taker
from horolog.interface.client.job_commands import JobCommands
from horolog.interface.client.job_sets import JobSets
from horolog.interface.client.log_reading import LogReading
from horolog.interface.client.questions import Questions
from horolog.interface.client.run_commands import RunCommands
from horolog.interface.client.watching import Watching
from horolog.interface.settings import MAX_ACTOR, Settings
from horolog.interface.tracing import current_traceparent
from horolog.interface.wiring import Client, SystemEntropy, connect

if TYPE_CHECKING:
    from horolog.application.inbox.giving import Giving, Outcome


@dataclass(frozen=True, slots=True)
class AsyncTransaction:
    """A connection of asyncio, handed over by an ``AsyncScheduler``: it awaits the answer."""

    connection: object

    async def later(
        self, namespace: str, giving: "Giving", answer: Callable[[Any], Answer]
    ) -> Answer:
        from horolog.infrastructure.clients_transaction import give_async

        return answer(await give_async(self.connection, namespace, giving))


class Scheduler(JobCommands, JobSets, RunCommands, Questions, LogReading, Watching):
    """Registers jobs and asks about them; safe to share between threads.

    ``database_url`` defaults to ``HOROLOG_DATABASE_URL``, then to the embedded server of ``horolog
    dev``; ``namespace`` to ``HOROLOG_NAMESPACE`` or "horolog"; ``actor``, the name that the events
    carry, to user@host. Nothing connects before the first call (entering ``with`` is one).
    ``reveal`` has the answers show the data of subjects, which needs the master key; without it
    they say that there is some.

    Several URLs in ``database_url``, with white space between them, are the several logs of a
    namespace, and ``log`` chooses one of them by its number: see docs/scale.md.

    Every method may raise ``StoreUnavailable`` (Postgres is away: nothing was changed, or the
    answer of the change was lost and the same call with the same key is safe), ``SchemaMissing``
    (run ``horolog migrate``) and ``SchemaTooNew``. Ids are taken as ``UUID`` or as text; text that
    is no id raises ``UnknownJob`` or ``UnknownOccurrence``. What cannot be asked for raises too:
    ``InvalidSchedule`` for an instant without a zone, ``InvalidPolicy`` for a ``limit`` outside 1
    to 10,000 or a choice that there is not, ``NotAllowed`` where one of several logs has to be
    chosen.

    What changes a job takes ``connection=``: the client's own connection (psycopg, psycopg2,
    SQLAlchemy's Connection or Session, Django's), in whose transaction the command is then given. A
    rollback leaves nothing of it; once committed it is carried out within some milliseconds, and
    what is returned is what it will be. See :mod:`horolog.application.inbox`.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        home: str | None = None,
        settings: Settings | None = None,
        reveal: bool = False,
        log: int | None = None,
    ) -> None:
        self.reveal = reveal
        self.settings = settings or Settings.read(
            database_url, namespace=namespace, actor=actor, home=home, log=log
        )
        self._client: Client | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def acting_as(self, actor: str) -> "Scheduler":
        """The same, on the same connections, for somebody else: ``actor`` is who the events say
        did it. For programs that act for many people; closing it closes nothing."""
        client = self._connected()
        settings = replace(self.settings, actor=storable(actor, MAX_ACTOR))
        other = Scheduler(settings=settings, reveal=self.reveal)
        context = replace(client.context, actor=other.settings.actor)
        other._client = replace(client, context=context, close=_nothing)
        return other

    def read_out(self, answer: Answer) -> Answer:
        """An answer that was not read out yet, such as an event of :meth:`follower`: what is sealed
        in it shown as such, as erased, or revealed."""
        return ReadingOut(self._connected().context.keyring, reveal=self.reveal)(answer)

    def _carried_out(
        self,
        connection: object | None,
        command: "Callable[[Taker], Outcome | Giving]",
        answer: Callable[[Any], Answer],
    ) -> Answer:
        if connection is None:
            client = self._connected()
            return self.read_out(answer(command(AtOnce(client.context, client.orders))))
        # Imported by those who use it: most clients do not.
        from horolog.application.inbox.commands import Commands
        from horolog.application.inbox.giving import Giver

        giver = Giver(
            self.settings.namespace, self.settings.actor, SystemEntropy(), current_traceparent()
        )
        return self._within(connection, cast("Giving", command(Commands(giver))), answer)

    def _within(
        self, connection: object, giving: "Giving", answer: Callable[[Any], Answer]
    ) -> Answer:
        """The answer to a command that is given in the transaction of ``connection``. What is
        sealed in it is shown as such: nothing is asked on another connection meanwhile."""

        if self.settings.place.logs > 1:
            raise NotAllowed(
                "connection= is one database's, and this namespace has several logs: a transaction"
                " cannot span them; register without it"
            )

        def read_out(outcome: Any) -> Answer:
            return ReadingOut(NoKeyring(), reveal=False)(answer(outcome))

        if isinstance(connection, AsyncTransaction):
            return cast("Answer", connection.later(self.settings.namespace, giving, read_out))
        from horolog.infrastructure.clients_transaction import give

        return read_out(give(connection, self.settings.namespace, giving))

    def _connected(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = connect(self.settings)
            return self._client


def _nothing() -> None:
    """Another scheduler closes the connections."""
