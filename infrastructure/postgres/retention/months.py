"""The months of occurrences, and how one leaves: two partitions are detached, then dropped.

``DETACH … CONCURRENTLY`` is not allowed where there is a default partition. A plain one takes some
milliseconds and needs both tables for itself: it is tried under the log lock with a short
``lock_timeout``, so that no append waits for a reader that holds a table. The files are unlinked
afterwards, when nobody can see the tables any more.
"""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg

from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.rebuild.skipping import append_to_log_stream
from horolog.application.retention.ports import Farewell, Month
from horolog.application.verify.hash_chain import Link
from horolog.application.verify.ports import StoredEvent
from horolog.domain.errors import NotAllowed
from horolog.domain.ids import EPOCH, fire_time_floor, log_stream
from horolog.domain.log_events import OccurrencesPruned
from horolog.infrastructure.postgres.database import Connection, Database
from horolog.infrastructure.postgres.hash_chain import PostgresChain
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.packing import ARGUMENTS, packed
from horolog.infrastructure.postgres.rebuild.rebuilds import drop_sets, exclusively

MOST_KEPT: Final = 1_000
"""Unresolved occurrences that are moved to the rest when their month leaves; with more of them the
month stays whole, because moving them takes the time for which the tables are locked."""

WAIT: Final = "40ms"
"""How long the tables are waited for under the log lock."""

_TOO_MANY = (
    f"more than {MOST_KEPT} of its occurrences are unresolved: replay or discard its dead letters"
)
_REST_IN_USE = f"more than {MOST_KEPT} rows beside it are newer than the oldest month that stays"
_APPEND = f"SELECT verdicts FROM :schema.append({', '.join(['%b'] * ARGUMENTS)})"
_MONTHS = """
    SELECT right(c.relname, 7) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = format('%%I.%%I', :literal::text, %s::text)::regclass
      AND c.relname ~ '_[0-9]{4}_[0-9]{2}$'
"""
_COUNTED = """
    SELECT count(*) FILTER (WHERE version = 1 AND stream <> ALL (%(kept)s)),
           count(*) FILTER (WHERE stream <> ALL (%(kept)s)),
           coalesce(min(position), 0), coalesce(max(position), 0),
           (SELECT count(*) FROM :schema.executions_{month}
            WHERE id <> ALL (%(kept)s) AND id >= %(low)s AND id < %(high)s)
    FROM :schema.occurrence_events_{month} WHERE stream >= %(low)s AND stream < %(high)s
"""
# The primary keys of next_runs and of the dead letters: ids begin with their fire time.
_UNRESOLVED = """
    SELECT id FROM (
        SELECT id FROM :schema.next_runs WHERE id >= %(low)s AND id < %(high)s AND kind <> 'job'
        UNION
        SELECT id FROM :schema.dead_letters WHERE id >= %(low)s AND id < %(high)s) u
    ORDER BY id LIMIT %(most)s
"""
_BEHIND = "SELECT follower, position FROM :schema.tracking WHERE position < %s ORDER BY 2 LIMIT 1"
# occurrence_events_position of the month.
_LATE = "SELECT DISTINCT stream FROM :schema.occurrence_events_{month} WHERE position > %s"
# What leaves with a month and is asked for after it: see migrations/0025. A success that stays
# after all has come as well: it does no harm to know it twice.
_REMEMBER = """
    INSERT INTO :schema.successes_pruned AS p (job_id, succeeded_at)
    SELECT x.job_id, max(x.finished_at)
    FROM :schema.executions_{month} x JOIN :schema.jobs j ON j.id = x.job_id
    WHERE x.state = 'succeeded' AND j.definition ->> 'expect_success_by' IS NOT NULL
    GROUP BY x.job_id
    ON CONFLICT (job_id) DO UPDATE SET succeeded_at = excluded.succeeded_at
    WHERE p.succeeded_at < excluded.succeeded_at
"""
_LEAVE = (
    "ALTER TABLE :schema.occurrence_events DETACH PARTITION :schema.occurrence_events_{month}",
    "ALTER TABLE :schema.executions DETACH PARTITION :schema.executions_{month}",
    "ALTER TABLE :schema.occurrence_events_{month} RENAME TO pruned_events_{month}",
    "ALTER TABLE :schema.executions_{month} RENAME TO pruned_executions_{month}",
)
_STAY = (
    """INSERT INTO :schema.occurrence_events
       SELECT * FROM :schema.pruned_events_{month}
       WHERE stream = ANY (%(kept)s) OR stream >= %(high)s""",
    """INSERT INTO :schema.executions
       SELECT * FROM :schema.pruned_executions_{month}
       WHERE id = ANY (%(kept)s) OR id >= %(high)s""",
)
# The rest is made anew, empty, when it has left as a month does.
_REST_AGAIN = (
    "CREATE TABLE :schema.occurrence_events_rest PARTITION OF :schema.occurrence_events DEFAULT",
    """CREATE TRIGGER no_truncate BEFORE TRUNCATE ON :schema.occurrence_events_rest
       FOR EACH STATEMENT EXECUTE FUNCTION :schema.refuse_change()""",
    "CREATE TABLE :schema.executions_rest PARTITION OF :schema.executions DEFAULT",
)
# The primary keys of both.
_NEWER_THAN_REST = """
    SELECT count(*) FROM (
        SELECT FROM :schema.occurrence_events_rest WHERE stream >= %(high)s
        UNION ALL SELECT FROM :schema.executions_rest WHERE id >= %(high)s LIMIT %(most)s) newer
"""
_LEFTOVERS = """
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = :literal::regnamespace AND c.relkind = 'r' AND NOT c.relispartition
      AND c.relname ~ '^pruned_(events|executions)_([0-9]{4}_[0-9]{2}|rest)$'
"""


class PostgresMonths:
    """As :class:`horolog.application.retention.ports.Months` promises."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chain = PostgresChain(database)
        self._log = PostgresLog(database, patience_s=5.0)
        self._held: Connection | None = None
        self._remembered: set[str] = set()

    @contextmanager
    def alone(self) -> Generator[None]:
        with ExitStack() as stack:
            self._held = stack.enter_context(exclusively(self._database))
            stack.callback(self._let_go)
            yield

    def older_than(self, moment: datetime) -> list[Month]:
        events, executions = (
            {row[0] for row in self._ask(_MONTHS, (parent,))}
            for parent in ("occurrence_events", "executions")
        )
        found: list[Month] = []
        for month in sorted(events | executions):
            since, until = _span(month)
            if until <= moment:
                whole = month in events and month in executions
                found.append(self._month(month, since, until, whole=whole))
        rest = self._rest(events | executions, found, moment)
        return [rest, *found] if rest is not None else found

    def page(self, after: int, limit: int) -> list[StoredEvent]:
        return self._chain.page(after, limit)

    def links(self, after: int, limit: int) -> list[Link]:
        return self._chain.links(after, limit)

    def say(self, events: Sequence[OccurrencesPruned]) -> None:
        for event in events:
            append_to_log_stream(self._log, self._database.namespace, [event])

    def drop(self, farewell: Farewell) -> bool:
        dropped = False
        self._remember(farewell.month)
        try:
            with self._connection.transaction() as transaction:
                self._put_links(farewell)
                self._do("SELECT pg_advisory_xact_lock(hashtextextended(:literal || '/log', 0))")
                self._do(f"SET LOCAL lock_timeout = '{WAIT}'")
                kept = self._leave(farewell)
                if farewell.account and not self._say(farewell.account[-1], kept):
                    raise psycopg.Rollback(transaction)
                dropped = True
        except psycopg.errors.LockNotAvailable:
            return False
        if dropped:
            self._drop_leftovers()
        return dropped

    def tidy(self) -> None:
        drop_sets(self._database, self._connection)
        self._drop_leftovers()

    @property
    def _connection(self) -> Connection:
        assert self._held is not None, "nobody may prune who is not alone"
        return self._held

    def _let_go(self) -> None:
        self._held = None
        self._remembered.clear()

    def _month(self, name: str, since: datetime, until: datetime, *, whole: bool) -> Month:
        if not whole:
            why = "one of its two partitions is missing: its rows are among the rest"
            return Month(since, until, 0, 0, 0, 0, 0, hindrance=why)
        kept = self._unresolved(since, until)
        params = {"kept": kept, "low": fire_time_floor(since), "high": fire_time_floor(until)}
        ((occurrences, events, first, last, executions),) = self._ask(
            _COUNTED.format(month=name), params
        )
        hindrance = self._hindrance(len(kept), last)
        return Month(
            since, until, occurrences, events, executions, first, last, tuple(kept), hindrance
        )

    def _rest(self, names: set[str], leaving: Sequence[Month], moment: datetime) -> Month | None:
        """All that is older than the oldest month that stays; ``None`` where nothing of it can go.

        Below that nothing but the rest has rows, so that the account may speak of the whole range.
        """
        going = {month.since for month in leaving if month.hindrance is None}
        stay = [since for since, _ in map(_span, names) if since not in going]
        until = min([*stay, _month_of(moment)])
        rest = replace(self._month("rest", EPOCH, until, whole=True), rest=True)
        if not rest.events and not rest.executions:
            return None
        params = {"high": fire_time_floor(until), "most": MOST_KEPT + 1}
        if self._ask(_NEWER_THAN_REST, params)[0][0] > MOST_KEPT:
            return replace(rest, hindrance=_REST_IN_USE)
        return rest

    def _hindrance(self, kept: int, last: int) -> str | None:
        if kept > MOST_KEPT:
            return _TOO_MANY
        for follower, position in self._ask(_BEHIND, (last,)):
            return (
                f"follower {follower} is at position {position} and has not seen it all: it has"
                f" events up to {last}"
            )
        return None

    def _unresolved(self, since: datetime, until: datetime) -> list[UUID]:
        span = {"low": fire_time_floor(since), "high": fire_time_floor(until)}
        return [row[0] for row in self._ask(_UNRESOLVED, {**span, "most": MOST_KEPT + 1})]

    def _remember(self, month: Month) -> None:
        """Before anything is locked, and once however often the tables cannot be had: it reads the
        whole month. What ends after that has an event after the look at the month, and stays."""
        name = _table(month)
        if name not in self._remembered:
            self._do(_REMEMBER.format(month=name))
            self._remembered.add(name)

    def _put_links(self, farewell: Farewell) -> None:
        pruning = farewell.account[-1].correlation if farewell.account else None
        statement = self._database.sql(
            "COPY :schema.chain_pruned (pruning, position_to, events, content) FROM STDIN"
        )
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for link in farewell.links:
                copy.write_row((pruning, link.position_to, link.events, link.content))

    def _leave(self, farewell: Farewell) -> list[UUID]:
        """Detaches the month; returns what stays of it."""
        name = _table(farewell.month)
        self._do(
            "LOCK TABLE ONLY :schema.occurrence_events, ONLY :schema.executions,"
            f" :schema.occurrence_events_{name}, :schema.executions_{name}"
            " IN ACCESS EXCLUSIVE MODE"
        )
        kept = self._kept_now(farewell, name)
        for statement in _LEAVE:
            self._do(statement.format(month=name))
        if farewell.month.rest:
            for statement in _REST_AGAIN:
                self._do(statement)
        stays = {"kept": kept, "high": fire_time_floor(farewell.month.until)}
        for statement in _STAY:
            self._connection.execute(self._database.sql(statement.format(month=name)), stays)
        return kept

    def _kept_now(self, farewell: Farewell, name: str) -> list[UUID]:
        """What stays, with what was ordered or has happened since the month was looked at."""
        month = farewell.month
        late = self._ask(_LATE.format(month=name), (farewell.until_position,))
        unresolved = self._unresolved(month.since, month.until)
        high = fire_time_floor(month.until)
        kept = {*month.kept, *unresolved, *(row[0] for row in late if row[0] < high)}
        if len(kept) > MOST_KEPT:
            raise NotAllowed(f"{month.name} cannot be pruned: {_TOO_MANY}")
        return sorted(kept)

    def _say(self, last: OccurrencesPruned, kept: list[UUID]) -> bool:
        """Appends the end of an account; ``False`` where it meets what somebody else has said."""
        event = last.model_copy(update={"kept": kept})
        stream = log_stream(self._database.namespace)
        ((version,),) = self._ask(
            "SELECT coalesce(max(version), 0) FROM :schema.job_events WHERE stream = %s", (stream,)
        )
        decision = Decision(Guard("nothing", stream, 0), -1)
        decision.events.append(NewEvent(stream, version + 1, event))
        ((verdicts,),) = self._ask(_APPEND, packed([decision], None, 0.0))
        return verdicts == [0]

    def _drop_leftovers(self) -> None:
        for (table,) in self._ask(_LEFTOVERS):
            self._do(f"DROP TABLE :schema.{table}")

    def _do(self, text: str, *params: Any) -> None:
        self._connection.execute(self._database.sql(text), params)

    def _ask(self, text: str, params: Any = None) -> list[Any]:
        return self._connection.execute(self._database.sql(text), params).fetchall()


def _table(month: Month) -> str:
    """What the names of its two partitions end with."""
    return "rest" if month.rest else month.since.strftime("%Y_%m")


def _month_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _span(month: str) -> tuple[datetime, datetime]:
    """The month behind the end of a partition's name: ``2026_07``."""
    year, number = int(month[:4]), int(month[5:])
    since = datetime(year, number, 1, tzinfo=UTC)
    until = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return since, until
