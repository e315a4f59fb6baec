"""The whole system in one namespace: real scanners and workers on servers that may be taken away.

    System ─ register ─▶ log ─▶ scanner processes ─▶ NATS ─▶ worker processes ─▶ effects

Leases and windows are short, so that what a fault costs is over in a second or two.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from tests.faults.system.processes import Process

from horolog import Every, JobSpec, Once, Retry, Scheduler
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.nats.connection import connect
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.settings import Settings

T = TypeVar("T")

HANDLERS = ("transactional", "transactional-def", "idempotent", "plain", "plain-def")

SCANNER: Mapping[str, Any] = {
    "lease_s": 1.0, "settle_s": 0.1, "sweep_s": 0.5, "look_interval_s": 0.2, "claim_window_s": 2.0,
    "max_window_s": 4.0, "claim_batch": 20, "publish_timeout_s": 1.0, "max_backoff_s": 0.5,
    "mark_interval_s": 0.2,
}  # fmt: skip
WORKER: Mapping[str, Any] = {
    "concurrency": 20, "threads": 8, "transactions": 8, "lease_s": 1.5, "heartbeat_s": 0.5,
    "ack_wait_s": 1.0, "retry_append_s": 0.1, "give_back_delay_s": 0.2,
    "drain_grace_s": 2.0, "cancel_grace_s": 1.0,
}  # fmt: skip
PATIENT = Retry(max_attempts=1000, base=0.05, factor=1.5, cap=0.5, jitter=0.5)
"""No number of faults makes a dead letter."""

EFFECTS = "CREATE TABLE :schema.effects (handler text, key text, attempt int)"
ONE_EFFECT = "CREATE UNIQUE INDEX ON :schema.effects (key) WHERE handler = 'idempotent'"


class NotInTime(AssertionError):
    """Something did not come true before its deadline; the message has what the processes said."""


class System:
    """``expected`` is how many occurrences each job has to have had in the end; how many those in
    ``restless`` have, nobody can say."""

    def __init__(
        self,
        servers: EmbeddedServers,
        namespace: str,
        folder: Path,
        *,
        prepared: bool = False,
        database_url: str | None = None,
        nats_url: str | None = None,
    ) -> None:
        """``prepared``: the namespace is there, with the table of effects.

        The URLs are those of ``servers``, where no others are given.
        """
        endpoints = servers.ensure()
        self.servers = servers
        database_url = database_url or endpoints.database_url
        self.settings = Settings.read(
            database_url, nats_url=nats_url or endpoints.nats_url, namespace=namespace
        )
        self.namespace = namespace
        self.database = Database(database_url, namespace, size=2)
        if not prepared:
            migrate(self.database, partitions=8)
            self.ask(EFFECTS)
            self.ask(ONE_EFFECT)
        self.scheduler = Scheduler(settings=self.settings)
        self.expected: dict[UUID, int] = {}
        self.restless: set[UUID] = set()
        self.processes: list[Process] = []
        self.folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends every process that is left."""
        for process in self.processes:
            process.kill()
        self.scheduler.close()
        self.database.close()

    # Processes.

    def start_scanner(self, **settings: Any) -> Process:
        """`horolog scanner`, as production runs it."""
        return self.start_scanner_at({}, **settings)

    def start_scanner_at(self, place: Mapping[str, str], **settings: Any) -> Process:
        """The same; ``place`` is where it finds its servers."""
        values = {**SCANNER, **settings}
        arguments = [
            part for name, value in values.items() for part in ("--set", f"{name}={value}")
        ]
        arguments = ["scanner", *arguments]
        return self._start("scanner", "horolog.interface.cli.main", arguments, place)

    def start_faulty_scanner(self, point: str, at: int, signal: str, **settings: Any) -> Process:
        """A scanner that sends itself a signal at a point of its work."""
        values = json.dumps({**SCANNER, **settings})
        module = "tests.faults.system.scanner_program"
        return self._start("scanner", module, [values, point, str(at), signal], {}, pipe=False)

    def start_worker(self, **settings: Any) -> Process:
        """`horolog worker`, as production runs it."""
        return self.start_worker_at({}, **settings)

    def start_worker_at(self, place: Mapping[str, str], **settings: Any) -> Process:
        """The same; ``place`` is where it finds its servers."""
        values = json.dumps({**WORKER, **settings})
        arguments = ["worker", "tests.faults.system.handlers:worker"]
        return self._start(
            "worker", "horolog.interface.cli.main", arguments, {"WORKER_SETTINGS": values, **place}
        )

    def _start(
        self,
        role: str,
        module: str,
        arguments: list[str],
        more: Mapping[str, str],
        *,
        pipe: bool = True,
    ) -> Process:
        place = {
            "HOROLOG_DATABASE_URL": self.settings.database_url(),
            "HOROLOG_NATS_URL": self.settings.nats_url(),
            "HOROLOG_NAMESPACE": self.namespace,
            **more,
        }
        if pipe:
            arguments = [*arguments, "--until-stdin-closes"]
        words = self.folder / f"{role}-{len(self.processes)}.log"
        process = Process.start(role, module, arguments, place, words)
        self.processes.append(process)
        return process

    def until_ready(self, *processes: Process) -> None:
        """Returns when all of them have said in the database that they live."""

        def ready() -> bool:
            names = [row[0] for row in self.ask("SELECT instance FROM :schema.instances")]
            return all(any(_is_of(name, p.pid) for name in names) for p in processes)

        self.until(ready, "the processes are at work")

    # Load.

    def register(
        self,
        count: int,
        *,
        over_s: float = 1.0,
        handlers: tuple[str, ...] = HANDLERS,
        seconds: float = 0.0,
    ) -> list[UUID]:
        """Jobs that fire once, evenly over the next seconds, of all kinds of handlers in turn."""
        begin = datetime.now(UTC)
        ids = [
            job.id
            for job in self.scheduler.register_many(
                JobSpec(
                    handlers[n % len(handlers)],
                    schedule=Once(begin + timedelta(seconds=over_s * n / count)),
                    payload={"seconds": seconds} if seconds else None,
                    retry=PATIENT,
                )
                for n in range(count)
            )
        ]
        self.expected.update(dict.fromkeys(ids, 1))
        return ids

    def register_repeating(self, count: int, *, every_s: float, times: int) -> list[UUID]:
        """Jobs with several fire times each, all of which have to run."""
        ids = [
            job.id
            for job in self.scheduler.register_many(
                repeating(HANDLERS[n % len(HANDLERS)], every_s, times) for n in range(count)
            )
        ]
        self.expected.update(dict.fromkeys(ids, times))
        return ids

    # Asking and waiting.

    def ask(self, statement: str, params: Any = None) -> list[Row]:
        return self.database.query(self.database.sql(statement), params)

    def count(self, topic: str) -> int:
        """How many events of a topic the log holds, such as ``occurrence.claimed.1``."""
        return self.ask("SELECT count(*)::int FROM :schema.log WHERE topic = %s", (topic,))[0][0]

    def effects(self) -> int:
        return self.ask("SELECT count(*)::int FROM :schema.effects")[0][0]

    def counter(self, name: str) -> int:
        rows = self.ask("SELECT value FROM :schema.counters WHERE name = %s", (name,))
        return rows[0][0] if rows else 0

    def leaders(self) -> set[str]:
        rows = self.ask("SELECT instance FROM :schema.partitions WHERE instance NOTNULL")
        return {row[0] for row in rows}

    def leads(self, process: Process) -> bool:
        return any(_is_of(name, process.pid) for name in self.leaders())

    def messages(self) -> int:
        """How many messages the ready stream holds; none where there is no stream."""

        async def held(jetstream: JetStreamContext) -> int:
            try:
                return (await jetstream.stream_info(self.stream)).state.messages
            except NotFoundError:
                return 0

        return self.on_nats(held)

    @property
    def stream(self) -> str:
        return f"{self.namespace}_ready"

    def on_nats(self, act: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        """What ``act`` answers, as somebody with a connection of their own."""

        async def connected() -> T:
            client, jetstream = await connect(self.settings.nats_url())
            try:
                return await act(jetstream)
            finally:
                await client.close()

        return asyncio.run(connected())

    def until(self, true: Callable[[], Any], what: str, within_s: float = 60.0) -> None:
        """Returns when it is so; Postgres may be away meanwhile."""
        deadline = time.monotonic() + within_s
        while True:
            try:
                if true():
                    return
            except StoreUnavailable:
                pass
            if time.monotonic() >= deadline:
                words = [
                    f"{p.role} {p.pid} ({p.status}): {p.last_words(2)}" for p in self.processes
                ]
                raise NotInTime("\n".join([f"not within {within_s} s: {what}", *words]))
            time.sleep(0.03)

    def until_done(self, within_s: float = 60.0) -> None:
        """Returns when nothing is left to do: no row in the index, no message in the stream."""

        def done() -> bool:
            return not self.ask("SELECT 1 FROM :schema.next_runs LIMIT 1")

        try:
            self.until(done, "every occurrence is finished", within_s)
        except NotInTime as error:
            left = self.ask("SELECT id, state, attempt, due_at FROM :schema.next_runs LIMIT 5")
            raise NotInTime(f"{error}\nleft: {left}") from None
        self.until(lambda: self.messages() == 0, "every message is acknowledged", within_s)


def repeating(handler: str, every_s: float, times: int, key: str | None = None) -> JobSpec:
    """A job of ``times`` fire times, none of which may be left out."""
    return JobSpec(
        handler,
        schedule=Every(every_s, limit=times),
        retry=PATIENT,
        key=key,
        catch_up="all",
        catch_up_rate=1000.0,
        overlap="allow",
    )


@contextmanager
def system_on(servers: EmbeddedServers, namespace: str, folder: Path) -> Generator[System]:
    """A fresh system; nothing of it runs afterwards."""
    system = System(servers, namespace, folder)
    try:
        yield system
    finally:
        system.close()


def _is_of(instance: str, pid: int) -> bool:
    """Whether the name of an instance is one of this process: host:pid:… or worker/host/pid/…"""
    return str(pid) in instance.replace("/", ":").split(":")
