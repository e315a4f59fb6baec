"""One worker process: adapters joined to the ports of the worker's loop.

    run_worker ─▶ WorkerLoop ─▶ Postgres (log, leases, transactions) and NATS (the ready queue)

Threads: the event loop's, two for the log, one for cold reads, one for heartbeats, one that hears
of runs that are to stop and, where there is a master key, one that hears of subjects that are
forgotten (each with a connection of its own), and those of the ``def`` handlers.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from uuid import UUID

from horolog.application.measuring import UNMEASURED
from horolog.application.ready import ReadyRun, ready_run
from horolog.application.several_logs.place import ONLY, LogPlace
from horolog.application.standing import Standing
from horolog.application.states import DueOccurrence
from horolog.application.tracing import UNTRACED
from horolog.application.worker.group_commit import AT_ONCE
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.worker import WorkerLoop, WorkerPorts
from horolog.domain.occurrence import OccurrenceState
from horolog.domain.text import storable
from horolog.infrastructure.clock import SystemClock
from horolog.infrastructure.handler_processes.pool import HandlerProcesses
from horolog.infrastructure.nats.ready_source import NatsReadySource
from horolog.infrastructure.nats.stream import StreamSettings
from horolog.infrastructure.postgres.attempt_leases import (
    PostgresCounts,
    PostgresLeases,
    PostgresResults,
)
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.due_news import PostgresDueNews
from horolog.infrastructure.postgres.handler_transactions import PostgresTransactions
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.namespace import check_place, message_key_of
from horolog.infrastructure.postgres.presence import PostgresPresence
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
from horolog.infrastructure.postgres.threaded import DedicatedThread, ThreadedLog
from horolog.infrastructure.privacy.keyring import CachedKeyring
from horolog.infrastructure.privacy.master_keys import MasterKeys
from horolog.interface.processes.monitor import Monitor, measured, watched
from horolog.interface.worker import Worker

logger = logging.getLogger("horolog.worker")


async def run_worker(
    worker: Worker,
    *,
    database_url: str,
    nats_url: str,
    namespace: str,
    stop: asyncio.Event,
    settings: WorkerSettings | None = None,
    monitor: Monitor | None = None,
    masters: Callable[[], MasterKeys] = MasterKeys,
    place: LogPlace = ONLY,
) -> None:
    """Works until ``stop`` is set, then drains and returns.

    ``settings`` replace the worker's own. ``monitor`` is told how it stands and what it measures.
    ``masters`` gives the master keys, none unless stated. ``place`` says which of the namespace's
    logs the database is.
    Raises ``InvalidSetting``, ``SchemaMissing``, ``SchemaTooNew``, ``StoreUnavailable`` and
    ``QueueUnavailable`` at the start; afterwards services that are away are waited for.
    """
    settings = settings or worker.settings
    worker.prepare()
    if not worker.by_name:
        logger.warning(
            "this worker has no handler: it can run nothing (register functions with"
            " @worker.handles, in the module that is named or in one that it imports)"
        )
    actor = worker_name()
    # A connection that swallows everything is noticed while the leases that it is to extend run.
    answer_s = max(5.0, settings.lease_s / 2)
    database = Database(database_url, namespace, size=5, answer_s=answer_s)
    log_thread = DedicatedThread("horolog-log", at_once=AT_ONCE)
    read_thread = DedicatedThread("horolog-reads")
    log = PostgresLog(database)
    transactions = PostgresTransactions(database, log)
    processes = HandlerProcesses()
    ready = NatsReadySource(
        nats_url,
        place.queue(namespace),
        worker.queues,
        settings=StreamSettings(ack_wait_s=settings.ack_wait_s),
    )
    keyring = CachedKeyring(PostgresSubjectKeys(database), masters, namespace)
    try:
        opens_sealed = keyring.has_master_key
        await read_thread.call(check_schema, database)
        await read_thread.call(check_place, database, place)
        await ready.start()
        occurrences = _Occurrences(PostgresStates(database), read_thread)
        ports = WorkerPorts(
            ready=ready,
            log=measured(ThreadedLog(log, log_thread), monitor, "runs"),
            occurrences=occurrences,
            leases=PostgresLeases(database),
            presence=PostgresPresence(database, actor, "worker"),
            transactions=transactions,
            results=PostgresResults(database, keyring),
            counts=PostgresCounts(database),
            stops=PostgresDueNews(database, "stop"),
            clock=SystemClock(),
            processes=processes,
            genuine=occurrences,
            message_key=await read_thread.call(message_key_of, database),
            keyring=keyring,
            forgotten=PostgresDueNews(database, "forgotten") if opens_sealed else None,
        )
        measures = UNMEASURED if monitor is None else monitor.measures
        spans = UNTRACED if monitor is None else monitor.spans
        loop = WorkerLoop(worker, ports, settings, actor, measures, spans)

        def standing() -> Standing:
            stands = loop.standing()
            if not ready.connected:
                stands.troubles.append("nothing can be taken from the queue: NATS is away")
            return stands

        with watched(monitor, standing):
            await loop.run(stop)
    finally:
        await processes.close()
        await ready.close()
        transactions.close()
        log_thread.close()
        read_thread.close()
        database.close()


def worker_name() -> str:
    """The name of this life of this process, in events and in `doctor`; no other ever has it."""
    return storable(f"worker/{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}", 200)


class _Occurrences:
    """As :class:`horolog.application.worker.redelivery.ReadsOccurrence` promises."""

    def __init__(self, states: PostgresStates, thread: DedicatedThread) -> None:
        self._states = states
        self._thread = thread

    async def occurrence(self, occurrence_id: UUID) -> OccurrenceState | None:
        return await self._thread.call(self._states.occurrence, occurrence_id)

    async def genuine(self, occurrences: Sequence[UUID]) -> list[ReadyRun]:
        """As :class:`horolog.application.worker.worker.ReadsGenuine` promises."""
        rows = await self._thread.call(self._states.due, list(occurrences))
        return [
            ready_run(
                row.job, row.occurrence, lost=row.lost, replayed=row.replayed, since=row.since
            )
            for row in rows
            if isinstance(row, DueOccurrence) and row.occurrence.state == "claimed"
        ]
