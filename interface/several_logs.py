"""A client of several logs: the adapters of each, joined into the ports of one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from horolog.application.commands.context import Context
from horolog.application.privacy.ports import NoKeyring, Opened
from horolog.application.queries.ports import WaitsForEvents
from horolog.application.several_logs.appending import AppendsToLogs
from horolog.application.several_logs.finding import Logs
from horolog.application.several_logs.listing import JobsOfLogs, LettersOfLogs, OccurrencesOfLogs
from horolog.application.several_logs.states import StatesOfLogs, StreamsOfLogs, one_at_a_time
from horolog.domain.sealed import Token
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import PARTITIONS, migrate
from horolog.infrastructure.postgres.migration_files import Migration
from horolog.infrastructure.postgres.namespace import check_place, recorded_of
from horolog.interface.settings import Settings
from horolog.interface.wiring import Client, Orders, SystemEntropy, connect_one


@dataclass(frozen=True, slots=True)
class ClientOfLogs(Client):
    """As :class:`Client`; what it cannot answer as one it refuses with ``NotAllowed``."""

    logs: Logs[Client]

    def of_job(self, job_id: UUID) -> Client:
        return self._acting(self.logs.of_job(job_id))

    def of_occurrence(self, occurrence_id: UUID) -> Client:
        return self._acting(self.logs.of_occurrence(occurrence_id))

    def of_one_log(self, what: str) -> Client:
        raise one_at_a_time(what, len(self.logs))

    def _acting(self, one: Client) -> Client:
        """A log's own client, for whom this one acts."""
        return replace(one, context=replace(one.context, actor=self.context.actor))


class _Clock:
    """The time of a log that answers: the clocks of their servers are to be level."""

    def __init__(self, logs: Logs[Client]) -> None:
        self._logs = logs

    def now(self) -> datetime:
        return cast("datetime", self._logs.first(lambda one: one.context.clock.now()))


class _NoKeys(NoKeyring):
    """Subjects have keys of their own in each log: their data are one log's."""

    def __init__(self, logs: Logs[Client]) -> None:
        self._logs = logs

    def seal(self, subject: str, place: UUID, value: Any) -> Token:  # noqa: ARG002
        raise one_at_a_time("data of a subject", len(self._logs))

    def open(self, token: Token) -> Opened | None:  # noqa: ARG002
        raise one_at_a_time("data of a subject", len(self._logs))


class _OfOneLog:
    """In the place of every port that only one log can answer."""

    def __init__(self, logs: Logs[Client]) -> None:
        self._logs = logs

    def __getattr__(self, name: str) -> object:
        raise one_at_a_time(name.replace("_", " "), len(self._logs))


class _Orders(_OfOneLog):
    """What was ordered before, as far as commands about one job ask."""

    def triggered(self, job_id: UUID, request_id: str) -> UUID | None:
        return self._logs.of_job(job_id).orders.triggered(job_id, request_id)


def connect_all(settings: Settings) -> ClientOfLogs:
    """A client of all logs of the namespace; each is connected to when it is first needed.

    Raises ``StoreUnavailable`` where none of them answers; ``SchemaMissing``, ``SchemaTooNew`` and
    ``InvalidSetting`` for the first that does.
    """
    logs: Logs[Client] = Logs([_opener(one) for one in settings.each_log()])
    first = logs.any()
    context = Context(
        log=AppendsToLogs(logs),
        states=StatesOfLogs(logs),
        clock=_Clock(logs),
        entropy=SystemEntropy(),
        namespace=settings.namespace,
        partitions=first.context.partitions,
        actor=settings.actor,
        traceparent=first.context.traceparent,
        keyring=_NoKeys(logs),
    )

    def close() -> None:
        for one in logs.opened():
            one.close()

    def refuse() -> int:
        raise one_at_a_time("the position of the log", len(logs))

    nobody: Any = _OfOneLog(logs)
    return ClientOfLogs(
        context,
        log=StreamsOfLogs(logs),
        states=context.states,
        jobs=JobsOfLogs(logs),
        occurrences=OccurrencesOfLogs(logs),
        letters=LettersOfLogs(logs),
        orders=cast("Orders", _Orders(logs)),
        queues=nobody,
        alerts=nobody,
        audit=nobody,
        past=nobody,
        due=nobody,
        position=refuse,
        news=cast("Callable[[], WaitsForEvents]", refuse),
        close=close,
        logs=logs,
    )


def _opener(settings: Settings) -> Callable[[], Client]:
    return lambda: connect_one(settings)


def migrate_all(
    settings: Settings,
    *,
    partitions: int | None = None,
    grant_to: tuple[str, ...] = (),
    regardless: bool = False,
) -> dict[int, list[Migration]]:
    """Creates or upgrades the schema of every log that the settings choose; what was applied to
    each.

    Log 0 comes first: it says which set the others belong to. Raises as
    :func:`horolog.infrastructure.postgres.migrate.migrate`.
    """
    applied: dict[int, list[Migration]] = {}
    set_id: UUID | None = None
    for one in settings.each_log():
        place = one.place
        if place.log > 0 and set_id is None:
            set_id = _set_of_first(replace(settings, log=0))
        database = Database(one.database_url(), one.namespace)
        try:
            applied[place.log] = migrate(
                database,
                partitions=PARTITIONS if partitions is None else partitions,
                grant_to=grant_to,
                regardless=regardless,
                place=place,
                set_id=set_id,
            )
            set_id = set_id or recorded_of(database).set_id
        finally:
            database.close()
    return applied


def _set_of_first(first: Settings) -> UUID:
    """The set of a namespace whose log 0 was created before."""
    database = Database(first.database_url(), first.namespace)
    try:
        check_place(database, first.place)
        return recorded_of(database).set_id
    finally:
        database.close()
