"""The second set of tables while a rebuild works on it, and its exchange with the set in use."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic, sleep
from typing import Any, Final

import psycopg

from horolog.application.rebuild.ports import Difference, Run, State, Window
from horolog.infrastructure.postgres.database import SESSION, Connection, Database
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.rebuild.before import StatesBefore
from horolog.infrastructure.postgres.rebuild.comparing import differences
from horolog.infrastructure.postgres.rebuild.reading import LogWindows
from horolog.infrastructure.postgres.rebuild.sets import TableSet, tables_of
from horolog.infrastructure.postgres.rebuild.writing import Writing
from horolog.projections.changes import Changes

EXCHANGE_WAIT: Final = "40ms"
"""How long an exchange waits for the tables while it holds the log lock; then it is tried again."""

SETTLE_TRIES: Final = 200
SETTLE_PAUSE_S: Final = 0.1

_LOG_KEY = "hashtextextended(:literal || '/log', 0)"

_MOVED = """
    UPDATE :schema.rebuilds SET position = %s, events = %s, moved_at = clock_timestamp()
    WHERE id = %s
"""
_STATE = """
    UPDATE :schema.rebuilds SET state = %s, error = %s, differences = coalesce(%s, differences),
           moved_at = clock_timestamp()
    WHERE id = %s
"""
# Looks that were put off in the set in use, beside the rows of the same version in the other: an
# early look would take a running attempt for lost. The primary keys of both.
_CARRY = """
    UPDATE {target}.next_runs s SET due_at = l.due_at FROM {source}.next_runs l
    WHERE s.look AND l.id = s.id AND l.version = s.version AND l.due_at > s.due_at
"""
_CARRY_LEASES = """
    UPDATE :other.partitions s SET lease_until = l.lease_until, published = l.published
    FROM :schema.partitions l WHERE l.partition = s.partition
"""
# A slot is taken by what the index says is claimed or runs: one that an index with a row too many
# took would never be given back. Under the log lock, at which nobody claims; reads the looks.
_SLOTS = "SELECT :schema.recount_slots() FROM :schema.lanes_in_use"
# Whoever leads a partition reads it again from its first row on.
_NEWS = """
    SELECT pg_notify(:literal || '_due', string_agg(partition || ' 0 *', E'\\n'))
    FROM :schema.partitions
"""


class PostgresShadow(StatesBefore):
    """As :class:`horolog.application.rebuild.ports.Shadow` promises."""

    def __init__(
        self, database: Database, connection: Connection, tables: TableSet, run: Run
    ) -> None:
        super().__init__(connection, tables)
        self._database = database
        self._main = connection
        self._tables = tables
        self._writing = Writing(connection, tables)
        self.run = run
        self.position = run.position
        self.longest_hold_s = 0.0
        self._windows: LogWindows | None = None

    @contextmanager
    def reading(self) -> Generator["PostgresShadow"]:
        """With the connection on which the log is read."""
        with self._database.session() as connection:
            connection.execute("SET statement_timeout = 0")
            connection.execute("SET work_mem = '64MB'")
            whole = "executions" in self.run.projections
            self._windows = LogWindows(self._database, connection, whole=whole)
            try:
                yield self
            finally:
                self._windows.close()
                self._windows = None

    def window(self, after: int, limit: int) -> Window:
        assert self._windows is not None
        return self._windows.after(after, limit)

    def end(self) -> int:
        return log_position(self._database)

    def write(self, changes: Changes) -> None:
        events = self.run.events + changes.events
        projections = self.run.projections
        with self._main.transaction():
            self._writing.write(
                changes,
                with_executions="executions" in projections,
                with_partitions="partitions" in projections,
            )
            self._do(_MOVED, changes.position, events, self.run.id)
        self._at(changes.position, events)

    def finish(self) -> None:
        for name in tables_of(self.run.projections):
            self._do("SELECT :schema.complete_twin(%s, %s)", self._tables.schema, name)
            self._do("SELECT :schema.index_twin(%s, %s)", self._tables.schema, name)

    def compare(self, last: Callable[[], bool]) -> Iterable[Difference] | None:
        return self._compared(snapshot) if (snapshot := self._snapshot(last)) else None

    def exchange(self, last: Callable[[], bool]) -> bool:
        old = TableSet(self._database, "old")
        if self._tables.schema != old.schema:
            # What the exchange before this one kept, so that this one's can take its name.
            self._main.execute(old.sql("DROP SCHEMA IF EXISTS :other CASCADE"))
        if "next_runs" in self.run.projections:
            self._carry(":other", ":schema")
        position, events = self.position, self.run.events
        done = False
        try:
            with self._main.transaction() as transaction:
                self._do(f"SELECT pg_advisory_xact_lock({_LOG_KEY})")
                held = monotonic()
                if not last():
                    raise psycopg.Rollback(transaction)
                self._exchange(old)
                done = True
            self._held(held)
        except psycopg.errors.LockNotAvailable:
            done = False
        if not done:
            self._at(position, events)
            return False
        self._tables.schema = old.schema
        settle_partitions(self._database, self._main, old)
        if "next_runs" in self.run.projections:
            # What was put off between the first carrying and the exchange.
            self._carry(":schema", ":other")
        return True

    def state(
        self, state: State, *, error: str | None = None, differences: int | None = None
    ) -> None:
        with self._main.transaction():
            if state == "dropped":
                self._do("DROP SCHEMA :other CASCADE")
            self._do(_STATE, state, error, differences, self.run.id)
        self.run = replace(self.run, state=state, error=error)

    def _exchange(self, old: TableSet) -> None:
        self._do(f"SET LOCAL lock_timeout = '{EXCHANGE_WAIT}'")
        names = list(self.run.projections)
        if "partitions" in names:
            self._do("LOCK TABLE :schema.partitions IN ACCESS EXCLUSIVE MODE")
            self._do(_CARRY_LEASES)
        self._do("SELECT :schema.exchange_tables(%s, %s)", self._tables.schema, names)
        if self._tables.schema != old.schema:
            rename = self._tables.sql("ALTER SCHEMA :other RENAME TO ")
            self._main.execute(rename + old.sql(":other"))
        if not {"next_runs", "jobs"}.isdisjoint(names):
            self._do(_SLOTS)
        self._do(_STATE, "exchanged", None, None, self.run.id)
        self._do(_NEWS)

    def _snapshot(self, last: Callable[[], bool]) -> "_Snapshot | None":
        """A transaction whose snapshot has both sets at one position; ``None`` as ``last`` says."""
        snapshot = _Snapshot(self._database, self._tables, tables_of(self.run.projections))
        self._do(f"SELECT pg_advisory_lock({_LOG_KEY})")
        held = monotonic()
        taken = False
        try:
            if last():
                snapshot.take()
                taken = True
        finally:
            self._do(f"SELECT pg_advisory_unlock({_LOG_KEY})")
            self._held(held)
            if not taken:
                snapshot.close()
        return snapshot if taken else None

    def _compared(self, snapshot: "_Snapshot") -> Iterable[Difference]:
        try:
            for name in self.run.projections:
                yield from differences(snapshot.connection, self._tables, name)
        finally:
            snapshot.close()

    def _carry(self, target: str, source: str) -> None:
        self._do(_CARRY.format(target=target, source=source))

    def _at(self, position: int, events: int) -> None:
        self.position = position
        self.run = replace(self.run, position=position, events=events)

    def _held(self, since: float) -> None:
        self.longest_hold_s = max(self.longest_hold_s, monotonic() - since)

    def _do(self, text: str, *params: Any) -> None:
        self._main.execute(self._tables.sql(text), params)


class _Snapshot:
    """A connection with a transaction that sees both sets as they were at one instant."""

    def __init__(self, database: Database, tables: TableSet, names: Sequence[str]) -> None:
        self._context = database.session()
        self.connection = self._context.__enter__()
        self._lock = tables.sql(
            "LOCK TABLE "
            + ", ".join(f":schema.{name}, :other.{name}" for name in names)
            + " IN ACCESS SHARE MODE"
        )
        for setting in (
            "statement_timeout = 0",
            "idle_in_transaction_session_timeout = 0",
            "work_mem = '64MB'",
        ):
            self.connection.execute(f"SET {setting}")

    def take(self) -> None:
        """The snapshot is that of the first query; the tables stay what they are until the end."""
        self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        self.connection.execute(self._lock)
        self.connection.execute("SELECT 1")

    def close(self) -> None:
        self._context.__exit__(None, None, None)


def settle_partitions(database: Database, connection: Connection, tables: TableSet) -> None:
    """Brings the partitions of exchanged tables to where their parents are, one at a time.

    Nothing depends on it but the names of schemas, and that dropping a set drops its own tables: so
    it is done before a set is dropped or filled, also after a kill.
    """
    connection.execute(f"SET lock_timeout = '{EXCHANGE_WAIT}'")
    try:
        tries = 0
        while True:
            try:
                statement = database.sql("SELECT :schema.settle_partition(%s)")
                row = connection.execute(statement, (tables.schema,)).fetchone()
                if row is None or not row[0]:
                    return
            except psycopg.errors.LockNotAvailable:
                tries += 1
                if tries > SETTLE_TRIES:
                    raise
                sleep(SETTLE_PAUSE_S)
    finally:
        usual = SESSION["lock_timeout"]
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (usual,))
