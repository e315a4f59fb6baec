"""A scanner on real servers: wires the adapters, runs until it is told to stop, and cleans up."""

import asyncio
import os
import secrets
import socket

from horolog.application.measuring import UNMEASURED
from horolog.application.scanner.assembly import Adapters, assemble
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.several_logs.place import ONLY, LogPlace
from horolog.application.tracing import UNTRACED
from horolog.infrastructure.alerts.delivering import Delivering
from horolog.infrastructure.alerts.subject import NatsSubjects
from horolog.infrastructure.clock import SystemClock
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.stream import StreamSettings
from horolog.infrastructure.postgres.alerts import PostgresAlerts, SeesPostgresAlerts
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.deadlines import PostgresDeadlines
from horolog.infrastructure.postgres.due_index import PostgresDueIndex
from horolog.infrastructure.postgres.due_news import PostgresDueNews
from horolog.infrastructure.postgres.leases import PostgresLeases
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.namespace import check_place, message_key_of
from horolog.infrastructure.postgres.order_traces import PostgresOrderTraces
from horolog.infrastructure.postgres.retention.ahead import months_kept_ahead
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.threaded import DedicatedThread, ThreadedDraining, ThreadedLog
from horolog.interface.alerting import environment_of_commands
from horolog.interface.processes.monitor import Monitor, measured, watched
from horolog.interface.wiring import draining

ROLE = "scanner"


async def run_scanner(
    database_url: str,
    nats_url: str,
    namespace: str,
    settings: ScannerSettings,
    stop: asyncio.Event,
    *,
    signals: Signals | None = None,
    stream: StreamSettings | None = None,
    monitor: Monitor | None = None,
    place: LogPlace = ONLY,
) -> None:
    """Scans until ``stop`` is set, then drains and gives back its partitions.

    Raises ``InvalidSetting``, ``SchemaMissing``, ``SchemaTooNew`` or ``StoreUnavailable`` before
    it has begun; once it runs, a server that is away is waited for. ``monitor`` is told how it
    stands and what it measures. ``place`` says which of the namespace's logs the database is.
    """
    measures = UNMEASURED if monitor is None else monitor.measures
    spans = UNTRACED if monitor is None else monitor.spans
    if monitor is not None:
        signals = signals or Signals()
        signals.join(lambda name, count: measures.count("signals_total", count, event=name))
    answer_s = settings.answer_s
    database = Database(database_url, namespace, size=6, answer_s=answer_s)
    uses = ("reads", "claims", "looks", "leases", "inbox")
    threads = [DedicatedThread(f"scanner-{use}") for use in uses]
    reads, claims, looks, leases, inbox = threads
    queue = NatsReadyQueue(
        nats_url,
        place.queue(namespace),
        settings=stream or stream_settings(settings),
        timeout_s=settings.publish_timeout_s,
        silence_s=answer_s,
    )
    subjects = NatsSubjects(nats_url, namespace)
    try:
        await looks.call(check_schema, database)
        await looks.call(check_place, database, place)
        queue.key = await looks.call(message_key_of, database)
        # Its own claims are in its memory already: nobody has to be told of them.
        log = PostgresLog(database, news_horizon_s=0.0)
        states = PostgresStates(database)
        received = await inbox.call(draining, database, states, "scanner", None, place)
        adapters = Adapters(
            log=measured(ThreadedLog(log, claims), monitor, "claims"),
            elections=measured(ThreadedLog(log, leases), monitor, "elections"),
            index=PostgresDueIndex(database, states, reads),
            looks=PostgresDueIndex(database, states, looks),
            leases=PostgresLeases(database, leases, role=ROLE),
            queue=queue,
            news=PostgresDueNews(database, quiet_s=answer_s),
            misses=PostgresDeadlines(database, looks),
            alerts=SeesPostgresAlerts(PostgresAlerts(database, log), looks),
            notices=Delivering(
                subjects,
                timeout_s=settings.alert_timeout_s,
                environment=environment_of_commands(),
                commands=settings.alert_commands,
            ),
            inbox=ThreadedDraining(received, inbox),
            orders=PostgresOrderTraces(database, reads),
            clock=SystemClock(),
        )
        async with months_kept_ahead(database, looks):
            scanner = assemble(
                instance_name(),
                adapters,
                settings,
                signals,
                namespace=namespace,
                measures=measures,
                spans=spans,
            )
            with watched(monitor, scanner.standing):
                await scanner.run(stop)
    finally:
        await queue.close()
        await subjects.close()
        for thread in threads:
            thread.close()
        database.close()


def instance_name() -> str:
    """A name that no other start of any process has: two of the same name would both be leader."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def stream_settings(settings: ScannerSettings) -> StreamSettings:
    """What the settings say, with a duplicate window that has passed before a claim window ends."""
    default = StreamSettings()
    window_s = min(default.duplicate_window_s, settings.claim_window_s * 2 / 3)
    return default.model_copy(
        update={
            "duplicate_window_s": max(0.1, window_s),
            "replicas": settings.stream_replicas,
        }
    )
