"""Adapters joined to the ports of commands and queries: the client's end of the system."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from horolog.application.alerting.ports import KeepsAlertRules
from horolog.application.commands.backfilling import FindsOccurrences
from horolog.application.commands.context import Context
from horolog.application.commands.dead_letters import FindsDeadLetters
from horolog.application.commands.limiting_queues import LimitsQueues
from horolog.application.commands.triggering import FindsTriggers
from horolog.application.log import AppendsToLog, ReadsLog
from horolog.application.privacy.ports import Keyring
from horolog.application.queries.audit_ports import Audits
from horolog.application.queries.past_ports import ReadsPast
from horolog.application.queries.ports import (
    ListsDeadLetters,
    ListsDueNext,
    ListsJobs,
    ListsOccurrences,
    WaitsForEvents,
)
from horolog.application.several_logs.place import ONLY, BirthsOfOneLog, LogPlace
from horolog.application.states import ReadsStates
from horolog.infrastructure.postgres.alerts import PostgresAlerts
from horolog.infrastructure.postgres.audit import PostgresAudit
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_news import PostgresLogNews
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.namespace import check_place, partitions_of
from horolog.infrastructure.postgres.orders import PostgresOrders
from horolog.infrastructure.postgres.past import PostgresPast
from horolog.infrastructure.postgres.queries_dead_letters import PostgresDeadLetterList
from horolog.infrastructure.postgres.queries_due import PostgresDueNext
from horolog.infrastructure.postgres.queries_jobs import PostgresJobList
from horolog.infrastructure.postgres.queries_occurrences import PostgresOccurrenceList
from horolog.infrastructure.postgres.queue_limits import PostgresQueueLimits
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.infrastructure.postgres.subject_keys import PostgresSubjectKeys
from horolog.infrastructure.privacy.keyring import CachedKeyring
from horolog.interface.settings import Settings
from horolog.interface.tracing import current_traceparent

if TYPE_CHECKING:
    from horolog.application.inbox.draining import Draining

PATIENCE_S = 5.0
"""How long a command whose connection broke is tried again before the client is told."""


class SystemEntropy:
    """As :class:`horolog.application.commands.context.Entropy` promises."""

    def draw(self, size: int) -> bytes:
        return os.urandom(size)


class Letters(ListsDeadLetters, FindsDeadLetters, Protocol):
    """Dead letters, in all their uses."""


class Orders(FindsTriggers, FindsOccurrences, Protocol):
    """What was ordered before."""


@dataclass(frozen=True, slots=True)
class Client:
    """Everything that a ``Scheduler`` calls. ``position`` is how far the log has come; ``news``
    makes one who waits for more; ``close`` ends the connections."""

    context: Context
    log: ReadsLog
    states: ReadsStates
    jobs: ListsJobs
    occurrences: ListsOccurrences
    letters: Letters
    orders: Orders
    queues: LimitsQueues
    alerts: KeepsAlertRules
    audit: Audits
    past: ReadsPast
    due: ListsDueNext
    position: Callable[[], int]
    news: Callable[[], WaitsForEvents]
    close: Callable[[], None]

    def of_job(self, job_id: UUID) -> "Client":  # noqa: ARG002
        """The client of the job's log: this one, where there is one log."""
        return self

    def of_occurrence(self, occurrence_id: UUID) -> "Client":  # noqa: ARG002
        """The client of the occurrence's log."""
        return self

    def of_one_log(self, what: str) -> "Client":  # noqa: ARG002
        """This client, for ``what`` is only to be had of one log; ``NotAllowed`` where it has
        several."""
        return self


def keyring_of(settings: Settings, database: Database) -> Keyring:
    """The keys of the namespace's subjects; the master key is read when one is first needed."""
    store = PostgresSubjectKeys(database)
    return CachedKeyring(store, settings.master_keys, settings.namespace)


def connect(settings: Settings) -> Client:
    """A client of the namespace: of all of its logs, or of the one that the settings choose.

    Raises ``StoreUnavailable``; ``SchemaMissing``, ``SchemaTooNew`` and ``InvalidSetting`` before
    anything is done.
    """
    if settings.log is None and settings.place.logs > 1:
        # Imported by those who use it: most clients do not.
        from horolog.interface.several_logs import connect_all

        return connect_all(settings)
    return connect_one(settings)


def connect_one(settings: Settings) -> Client:
    """A client of one log. Raises as :func:`connect`."""
    database = Database(settings.database_url(), settings.namespace)
    log = PostgresLog(database, patience_s=PATIENCE_S)
    states = PostgresStates(database)
    try:
        partitions = partitions_of(database)
        check_place(database, settings.place)
    except BaseException:
        database.close()
        raise
    context = Context(
        log=births_of(settings.place, log, partitions),
        states=states,
        clock=PostgresClock(database),
        entropy=SystemEntropy(),
        namespace=settings.namespace,
        partitions=partitions,
        actor=settings.actor,
        traceparent=current_traceparent,
        keyring=keyring_of(settings, database),
        settle=lambda job_id: draining(
            database, states, settings.actor, partitions, settings.place
        ).settle(job_id),
    )
    return Client(
        context,
        log,
        states,
        PostgresJobList(database),
        PostgresOccurrenceList(database),
        PostgresDeadLetterList(database),
        PostgresOrders(database),
        PostgresQueueLimits(database),
        PostgresAlerts(database, log),
        PostgresAudit(database),
        PostgresPast(database),
        PostgresDueNext(database),
        position=partial(log_position, database),
        news=partial(PostgresLogNews, database),
        close=database.close,
    )


def births_of(place: LogPlace, log: PostgresLog, partitions: int) -> AppendsToLog:
    """The log, which takes no job that belongs to another one of the namespace."""
    return log if place == ONLY else BirthsOfOneLog(log, place, partitions)


def draining(
    database: Database,
    states: PostgresStates,
    actor: str,
    partitions: int | None = None,
    place: LogPlace = ONLY,
) -> "Draining":
    """What carries out the commands of the namespace's inbox. Raises ``StoreUnavailable``."""
    # Imported by those who use it: most clients do not.
    from horolog.application.inbox.draining import Draining, Inbox
    from horolog.infrastructure.postgres.inbox import PostgresInbox

    # The leaders are to hear of what they append here: it is not in their memory.
    log = PostgresLog(database)
    count = partitions_of(database) if partitions is None else partitions
    context = Context(
        log=log,
        states=states,
        clock=PostgresClock(database),
        entropy=SystemEntropy(),
        namespace=database.namespace,
        partitions=count,
        actor=actor,
    )
    inbox: Inbox = PostgresInbox(database, log)
    if place != ONLY:
        from horolog.application.several_logs.inbox import InboxOfOneLog

        inbox = InboxOfOneLog(inbox, place, count)
    return Draining(inbox, PostgresOrders(database), context)
