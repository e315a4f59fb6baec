"""Adapters joined to the ports of commands and queries: the client's end of the system."""

import os
from dataclasses import dataclass

from horolog.application.commands.context import Context
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_news import PostgresLogNews
from horolog.infrastructure.postgres.namespace import partitions_of
from horolog.infrastructure.postgres.orders import PostgresOrders
from horolog.infrastructure.postgres.queries_dead_letters import PostgresDeadLetterList
from horolog.infrastructure.postgres.queries_jobs import PostgresJobList
from horolog.infrastructure.postgres.queries_occurrences import PostgresOccurrenceList
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.interface.settings import Settings

PATIENCE_S = 5.0
"""How long a command whose connection broke is tried again before the client is told."""


class SystemEntropy:
    """As :class:`horolog.application.commands.context.Entropy` promises."""

    def draw(self, size: int) -> bytes:
        return os.urandom(size)


@dataclass(frozen=True, slots=True)
class Client:
    """Everything that a ``Scheduler`` calls."""

    database: Database
    context: Context
    log: PostgresLog
    states: PostgresStates
    jobs: PostgresJobList
    occurrences: PostgresOccurrenceList
    letters: PostgresDeadLetterList
    orders: PostgresOrders

    def news(self) -> PostgresLogNews:
        return PostgresLogNews(self.database)


def connect(settings: Settings) -> Client:
    """A client of the namespace.

    Raises ``StoreUnavailable``; ``SchemaMissing`` and ``SchemaTooNew`` before anything is done.
    """
    database = Database(settings.database_url(), settings.namespace)
    log = PostgresLog(database, patience_s=PATIENCE_S)
    states = PostgresStates(database)
    try:
        partitions = partitions_of(database)
    except BaseException:
        database.close()
        raise
    context = Context(
        log=log,
        states=states,
        clock=PostgresClock(database),
        entropy=SystemEntropy(),
        namespace=settings.namespace,
        partitions=partitions,
        actor=settings.actor,
    )
    return Client(
        database,
        context,
        log,
        states,
        PostgresJobList(database),
        PostgresOccurrenceList(database),
        PostgresDeadLetterList(database),
        PostgresOrders(database),
    )
