"""Alerts on Postgres: the table of rules, and what alerts are decided from (migrations/0009)."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from horolog.application.alerting.ports import Letters, Seen
from horolog.application.alerting.rules import AlertRule, streams_of
from horolog.application.decision import Decision
from horolog.application.log import Recorded, Verdict
from horolog.domain.alert import TAIL, AlertState, evolve
from horolog.domain.event import Event, read_event
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog, recorded
from horolog.infrastructure.postgres.packing import ARGUMENTS
from horolog.infrastructure.postgres.threaded import DedicatedThread

log = logging.getLogger("horolog.alerts")

MOST = 1_000
"""The most owners that are looked at, and three times as many alerts."""

_APPEND = ", ".join(["%b"] * ARGUMENTS)

# One statement, so one transaction; the primary key of alert_rules.
_SET = f"""
    WITH appended AS MATERIALIZED (SELECT verdicts[1] AS verdict FROM :schema.append({_APPEND})),
    kept AS (
        INSERT INTO :schema.alert_rules AS r
            (owner, dead_letters, dead_letter_age, deadlines, rule, changed_by)
        SELECT %s, %s, %s, %s, %s, %s FROM appended WHERE verdict = 0
        ON CONFLICT (id) DO UPDATE SET
            dead_letters = excluded.dead_letters, dead_letter_age = excluded.dead_letter_age,
            deadlines = excluded.deadlines, rule = excluded.rule,
            changed_by = excluded.changed_by, changed_at = clock_timestamp()
    )
    SELECT verdict FROM appended
"""

_REMOVE = f"""
    WITH appended AS MATERIALIZED (SELECT verdicts[1] AS verdict FROM :schema.append({_APPEND})),
    dropped AS (
        DELETE FROM :schema.alert_rules r USING appended a
        WHERE a.verdict = 0 AND r.id = coalesce('=' || %s::text, '')
    )
    SELECT verdict FROM appended
"""

_RULES = "SELECT rule FROM :schema.alert_rules ORDER BY id LIMIT 10000"
_SEEN = "SELECT moment, partitions, rules, letters, late, tails FROM :schema.alerts_seen(%s, %s)"
_TAILS = "SELECT * FROM :schema.alert_tails(%s, %s)"

# The index job_events_alerts.
_HISTORY = r"""
    SELECT position, recorded_at, stream, version, topic, state FROM :schema.job_events
    WHERE (topic LIKE 'alert.%%' OR topic LIKE 'alert\_rule.%%') AND position > %(after)s
      AND (%(owner)s::text IS NULL OR stream = ANY (%(streams)s))
    ORDER BY position LIMIT %(limit)s
"""


class PostgresAlerts:
    """As :class:`horolog.application.alerting.ports.KeepsAlertRules` promises."""

    def __init__(self, database: Database, log: PostgresLog) -> None:
        self._database = database
        self._log = log
        self._set = database.sql(_SET)
        self._remove = database.sql(_REMOVE)
        self._rules = database.sql(_RULES)
        self._seen = database.sql(_SEEN)
        self._history = database.sql(_HISTORY)

    def set_rule(self, rule: AlertRule, decision: Decision, *, actor: str) -> Verdict:
        params = (
            *self._log.arguments([decision]),
            rule.owner,
            rule.dead_letters,
            rule.dead_letter_age,
            rule.deadlines,
            Jsonb(rule.model_dump(mode="json", exclude_defaults=True)),
            actor,
        )
        return _verdict(self._database.query(self._set, params))

    def remove_rule(self, owner: str | None, decision: Decision) -> Verdict:
        params = (*self._log.arguments([decision]), owner)
        return _verdict(self._database.query(self._remove, params))

    def rules(self) -> Sequence[AlertRule]:
        return _readable(row[0] for row in self._database.query(self._rules))

    def alerts(self) -> Sequence[AlertState]:
        known = alerts_of(self._database)
        return sorted(known, key=lambda one: (not one.is_open, one.owner or "", one.condition))

    def history(self, owner: str | None, *, after: int, limit: int) -> Sequence[Recorded]:
        streams = streams_of(self._database.namespace, owner)
        params = {"after": after, "owner": owner, "streams": streams, "limit": limit}
        return [recorded(row) for row in self._database.query(self._history, params)]

    def seen(self) -> Seen:
        """As :class:`horolog.application.alerting.ports.SeesAlerts` promises, but blocking."""
        row = self._database.query(self._seen, (TAIL, MOST))[0]
        moment, partitions, rules, letters, late, tails = row
        rows = [
            (UUID(stream), version, datetime.fromisoformat(at), topic, state.encode())
            for stream, version, at, topic, state in tails
        ]
        return Seen(
            now=moment,
            partitions=partitions,
            rules=_readable(rules),
            letters=[
                Letters(owner, depth, datetime.fromisoformat(oldest))
                for owner, depth, oldest in letters
            ],
            late=dict(late),
            alerts={state.stream: state for state in _by_stream(rows)},
        )


class SeesPostgresAlerts:
    """As :class:`horolog.application.alerting.ports.SeesAlerts` promises."""

    def __init__(self, alerts: PostgresAlerts, thread: DedicatedThread) -> None:
        self._alerts = alerts
        self._thread = thread

    async def seen(self) -> Seen:
        return await self._thread.call(self._alerts.seen)


def alerts_of(database: Database) -> list[AlertState]:
    """Every alert that was ever raised, from the ends of their streams."""
    return _by_stream(database.query(database.sql(_TAILS), (TAIL, 3 * MOST)))


def _by_stream(rows: Iterable[Any]) -> list[AlertState]:
    streams = groupby(rows, key=lambda row: row[0])
    states = (_folded(stream, tail) for stream, tail in streams)
    return [state for state in states if state is not None]


def folded(stream: UUID, tail: Iterable[tuple[int, datetime, Event]]) -> AlertState | None:
    """An alert from the end of its stream, which holds its last notice."""
    state: AlertState | None = None
    for version, at, event in tail:
        condition = getattr(event, "condition", None)
        if state is None:
            if condition is None:
                continue  # what was done about an earlier notice
            state = AlertState(stream, condition, getattr(event, "owner", None))
        state = evolve(state, version, at, event)
    return state


def _folded(stream: UUID, rows: Iterable[Any]) -> AlertState | None:
    return folded(
        stream,
        (
            (version, at, read_event(topic, bytes(state), where=f"{stream}:{version}"))
            for _, version, at, topic, state in rows
        ),
    )


def _rule(stored: dict[str, Any]) -> AlertRule:
    return AlertRule.model_validate(stored)


def _readable(stored: Iterable[dict[str, Any]]) -> list[AlertRule]:
    """The rules, without those that are none (made by hand): they must not silence the others."""
    rules: list[AlertRule] = []
    for one in stored:
        try:
            rules.append(_rule(one))
        except ValueError:
            log.warning("a rule of alerts of %r cannot be read: set it again", one.get("owner"))
    return rules


def _verdict(rows: list[Any]) -> Verdict:
    return "accepted" if rows[0][0] == 0 else "conflict"
