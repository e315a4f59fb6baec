"""Rebuilds of a namespace: one at a time, each with a record of how far it has come."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from horolog.application.rebuild.ports import Purpose, Run
from horolog.domain.errors import NotAllowed, UnreadableEvent
from horolog.domain.event import read_event
from horolog.domain.ids import log_stream
from horolog.domain.log_events import EventSkipped, LogEvent, OccurrencesPruned
from horolog.infrastructure.postgres.database import Connection, Database, Row
from horolog.infrastructure.postgres.rebuild.sets import TableSet, tables_of
from horolog.infrastructure.postgres.rebuild.shadow import PostgresShadow, settle_partitions
from horolog.projections.changes import VERSION

_RUN = (
    "id, purpose, projections, fold_version, state, position, events, differences, error, actor,"
    " reason, started_at, moved_at"
)
_RUNS = f"SELECT {_RUN} FROM :schema.rebuilds ORDER BY id DESC LIMIT %s"
_UNFINISHED = f"""
    SELECT {_RUN} FROM :schema.rebuilds WHERE state IN ('folding', 'stopped', 'kept')
    ORDER BY id DESC LIMIT 1
"""
_KEPT = f"""
    SELECT {_RUN} FROM :schema.rebuilds WHERE state IN ('exchanged', 'rolled_back')
    ORDER BY id DESC LIMIT 1
"""
_BEGIN = f"""
    INSERT INTO :schema.rebuilds (purpose, projections, fold_version, state, actor, reason)
    VALUES (%s, %s, %s, 'folding', %s, %s) RETURNING {_RUN}
"""
_GO_ON = f"""
    UPDATE :schema.rebuilds SET purpose = %s, state = 'folding', error = NULL, actor = %s,
           reason = %s, projections = %s
    WHERE id = %s RETURNING {_RUN}
"""
_ABANDON = """
    UPDATE :schema.rebuilds SET state = 'dropped' WHERE state IN ('folding', 'stopped', 'kept')
"""
_ALONE_KEY = "hashtextextended(:literal || '/rebuild', 0)"
_EXISTS = "SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL"
# The primary key of job_events.
_SAID = """
    SELECT position, version, topic, state FROM :schema.job_events WHERE stream = %s
    ORDER BY version
"""
# The position indexes of both tables.
_AT = """
    SELECT stream, version, topic FROM :schema.job_events WHERE position = %(position)s
    UNION ALL
    SELECT stream, version, topic FROM :schema.occurrence_events WHERE position = %(position)s
    LIMIT 1
"""


class PostgresRebuilds:
    """As :class:`horolog.application.rebuild.ports.Rebuilds` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shadow = TableSet(database, "shadow")
        self._old = TableSet(database, "old")

    @contextmanager
    def begin(
        self, purpose: Purpose, projections: Sequence[str], *, actor: str, reason: str | None
    ) -> Generator[PostgresShadow]:
        with exclusively(self._database) as connection:
            settle_partitions(self._database, connection, self._old)
            run = self._gone_on_with(connection, purpose, projections, actor, reason)
            if run is None:
                run = self._begun(connection, purpose, projections, actor, reason)
            tables = TableSet(self._database, "shadow")
            shadow = PostgresShadow(self._database, connection, tables, run)
            with shadow.reading():
                yield shadow

    @contextmanager
    def kept(self) -> Generator[PostgresShadow]:
        with exclusively(self._database) as connection:
            rows = connection.execute(self._database.sql(_KEPT)).fetchall()
            if not rows or not self._exists(connection, self._old):
                raise NotAllowed(
                    "there is nothing to roll back to: no rebuild has put new tables to use, or"
                    " those that were in use before are gone"
                )
            run = _run(rows[0])
            if run.fold_version != VERSION:
                raise NotAllowed(
                    f"the tables that were kept were written by version {run.fold_version} of the"
                    f" projections, and this code is version {VERSION}: roll back with that release"
                )
            settle_partitions(self._database, connection, self._old)
            shadow = PostgresShadow(self._database, connection, self._old, run)
            with shadow.reading():
                yield shadow

    def runs(self, limit: int) -> list[Run]:
        return [_run(row) for row in self._database.query(self._database.sql(_RUNS), (limit,))]

    def has_kept(self) -> bool:
        """Whether there are tables to roll back to."""
        with self._database.connection() as connection:
            return self._exists(connection, self._old)

    def pruned(self) -> list[tuple[int, OccurrencesPruned]]:
        return [(at, event) for at, event in self._said() if isinstance(event, OccurrencesPruned)]

    def skipped(self) -> list[EventSkipped]:
        return [event for _, event in self._said() if isinstance(event, EventSkipped)]

    def event_at(self, position: int) -> tuple[UUID, int, str] | None:
        rows: list[Any] = self._database.query(self._database.sql(_AT), {"position": position})
        return rows[0] if rows else None

    def _said(self) -> list[tuple[int, LogEvent]]:
        return said_of_log(self._database)

    def _gone_on_with(
        self,
        connection: Connection,
        purpose: Purpose,
        projections: Sequence[str],
        actor: str,
        reason: str | None,
    ) -> Run | None:
        """The run that an earlier process has left, if its tables serve this one."""
        rows = connection.execute(self._database.sql(_UNFINISHED)).fetchall()
        if not rows or not self._exists(connection, self._shadow):
            return None
        run = _run(rows[0])
        if run.fold_version != VERSION or not set(projections) <= set(run.projections):
            return None
        params = (purpose, actor, reason, list(run.projections), run.id)
        return _run(connection.execute(self._database.sql(_GO_ON), params).fetchall()[0])

    def _begun(
        self,
        connection: Connection,
        purpose: Purpose,
        projections: Sequence[str],
        actor: str,
        reason: str | None,
    ) -> Run:
        with connection.transaction():
            connection.execute(self._shadow.sql("DROP SCHEMA IF EXISTS :other CASCADE"))
            connection.execute(self._database.sql(_ABANDON))
            connection.execute(self._shadow.sql("CREATE SCHEMA :other"))
            twin = self._database.sql("SELECT :schema.create_twin(%s, %s)")
            for name in tables_of(projections):
                connection.execute(twin, (self._shadow.schema, name))
            if "partitions" in projections:
                connection.execute(
                    self._shadow.sql(
                        "INSERT INTO :other.partitions (partition, stream, lease_until, published)"
                        " SELECT partition, stream, lease_until, published FROM :schema.partitions"
                    )
                )
            params = (purpose, list(projections), VERSION, actor, reason)
            return _run(connection.execute(self._database.sql(_BEGIN), params).fetchall()[0])

    def _exists(self, connection: Connection, tables: TableSet) -> bool:
        row = connection.execute(_EXISTS, (tables.schema,)).fetchone()
        return row is not None and bool(row[0])


@contextmanager
def exclusively(database: Database) -> Generator[Connection]:
    """A connection whose process alone rebuilds or prunes; ``NotAllowed`` where another does."""
    with database.session() as connection:
        connection.execute("SET statement_timeout = 0")
        row = connection.execute(
            database.sql(f"SELECT pg_try_advisory_lock({_ALONE_KEY})")
        ).fetchone()
        if row is None or not row[0]:
            raise NotAllowed(
                "another process is rebuilding, verifying or pruning this namespace: wait for it"
                " (horolog projection status)"
            )
        try:
            yield connection
        finally:
            # The server notices the end of a connection some time after it, and the next one who
            # asks need not wait for that. After an error there may be no connection any more.
            if not connection.closed:
                connection.rollback()
                connection.execute(database.sql(f"SELECT pg_advisory_unlock({_ALONE_KEY})"))


def drop_sets(database: Database, connection: Connection) -> None:
    """Drops what rebuilds have left beside the tables in use, begun or kept."""
    old = TableSet(database, "old")
    settle_partitions(database, connection, old)
    with connection.transaction():
        for tables in (old, TableSet(database, "shadow")):
            connection.execute(tables.sql("DROP SCHEMA IF EXISTS :other CASCADE"))
        connection.execute(database.sql(_ABANDON))


def said_of_log(database: Database) -> list[tuple[int, LogEvent]]:
    """Everything in the stream of what is said about the log itself, with its positions."""
    stream = log_stream(database.namespace)
    found: list[tuple[int, LogEvent]] = []
    for position, version, topic, state in database.query(database.sql(_SAID), (stream,)):
        event = read_event(topic, bytes(state), where=f"{stream}:{version}")
        if not isinstance(event, LogEvent):
            raise UnreadableEvent(f"event {stream}:{version} ({topic}) says nothing of the log")
        found.append((position, event))
    return found


def _run(row: Row) -> Run:
    values = list(row)
    values[2] = tuple(values[2])
    return Run(*values)
