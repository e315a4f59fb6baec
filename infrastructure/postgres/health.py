"""The health of a namespace as its tables tell it: every query bounded, none takes a lock."""

from datetime import UTC, datetime
from time import perf_counter
from typing import Any, cast

from horolog.application.health import (
    COUNT_LIMIT,
    DeadLetterDepth,
    Follower,
    Instance,
    Lateness,
    OpenAlert,
    StoreHealth,
    Waiting,
)
from horolog.infrastructure.postgres.alerts import alerts_of
from horolog.infrastructure.postgres.compatibility import known_schema
from horolog.infrastructure.postgres.database import Database, Row
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.roles.applying import lacking

STUCK_AFTER = "60 seconds"

_CLOCK = "SELECT clock_timestamp(), current_setting('server_version')"

_SCHEMA = "SELECT max(number) FROM :schema.migrations"

_JOBS = """
    SELECT status, count(*) FROM (SELECT status FROM :schema.jobs LIMIT %(limit)s) j GROUP BY status
"""

# next_runs_fires, a bounded range of each partition.
_LATE = """
    SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(d.due_at)), 0)::float8
    FROM :schema.partitions p CROSS JOIN LATERAL (
        SELECT r.due_at FROM :schema.next_runs r
        WHERE r.partition = p.partition AND NOT r.look AND r.lane IS NULL
          AND r.due_at <= clock_timestamp()
        ORDER BY r.due_at, r.id LIMIT 10000) d
"""

# next_runs_look_times, a bounded range of each partition.
_OVERDUE = """
    SELECT count(*)
    FROM :schema.partitions p CROSS JOIN LATERAL (
        SELECT FROM :schema.next_runs r
        WHERE r.partition = p.partition AND r.look
          AND r.due_at < clock_timestamp() - %(stuck)s::interval
        ORDER BY r.due_at, r.id LIMIT 10000) d
"""

# next_runs_look_times holds the unfinished only, and the claimed ones are few in a healthy system.
_UNPUBLISHED = """
    SELECT count(*)
    FROM :schema.partitions p CROSS JOIN LATERAL (
        SELECT FROM :schema.next_runs r
        WHERE r.partition = p.partition AND r.look AND r.state = 'claimed'
          AND r.position > p.published
        LIMIT 10000) d
"""

# occurrence_events_position from its end, then its primary key: the last events, however long the
# log. A first claim says when it was meant to begin; only what happened of late is spoken of.
_RECENT_LATENESS = """
    WITH recent AS MATERIALIZED (
        SELECT e.stream, e.version, e.topic, e.recorded_at, e.state
        FROM :schema.occurrence_events e ORDER BY e.position DESC LIMIT 3000
    ), claims AS (
        SELECT c.stream, c.version, c.recorded_at, :schema.decoded(c.state) AS said
        FROM recent c WHERE c.topic = 'occurrence.claimed.1'
          AND c.recorded_at > clock_timestamp() - interval '15 minutes'
    ), starts AS (
        SELECT a.recorded_at, :schema.decoded(c.state) AS said
        FROM recent a JOIN :schema.occurrence_events c
          ON c.stream = a.stream AND c.version = a.version - 1 AND c.topic = 'occurrence.claimed.1'
        WHERE a.topic = 'occurrence.attempted.1'
          AND a.recorded_at > clock_timestamp() - interval '15 minutes'
    ), late AS (
        SELECT stage, greatest(0, extract(epoch FROM
                   recorded_at - coalesce(said ->> 'due', said ->> 'fire_time')::timestamptz)) AS s
        FROM (SELECT 'claim' AS stage, recorded_at, said FROM claims
              UNION ALL SELECT 'start', recorded_at, said FROM starts) both_stages
        WHERE (said ->> 'attempt')::int = 1 AND coalesce(said ->> 'kind', '') <> 'backfill'
    )
    SELECT count(s), coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY s), 0)::float8,
           coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY s), 0)::float8,
           coalesce(max(s), 0)::float8
    FROM (VALUES ('claim'), ('start')) AS stages (stage) LEFT JOIN late USING (stage)
    GROUP BY stage ORDER BY stage
"""

# next_runs_lanes and lane_slots, bounded.
_LANES = """
    SELECT (SELECT count(*) FROM (SELECT FROM :schema.next_runs
                                  WHERE lane IS NOT NULL LIMIT %(limit)s) waits),
           (SELECT count(*) FROM (SELECT FROM :schema.lane_slots LIMIT %(limit)s) slots)
"""

_PARTITIONS = """
    SELECT CASE WHEN lease_until >= clock_timestamp() THEN instance END AS leader, count(*)
    FROM :schema.partitions GROUP BY leader
"""

_INSTANCES = """
    SELECT instance, role, started_at, seen_until >= clock_timestamp(), details
    FROM :schema.instances ORDER BY role, started_at LIMIT 1000
"""

# dead_letters_owner.
_DEAD = """
    SELECT owner, count(*), min(since)
    FROM (SELECT owner, since FROM :schema.dead_letters LIMIT %(limit)s) d
    GROUP BY owner ORDER BY count(*) DESC, owner LIMIT 100
"""

# next_runs_unfinished, from its beginning.
_WAITING = """
    SELECT j.name, j.queue, r.state, count(*),
           extract(epoch FROM clock_timestamp() - min(r.due_at))::float8
    FROM (SELECT job_id, state, due_at FROM :schema.next_runs
          WHERE kind <> 'job' LIMIT %(limit)s) r
    JOIN :schema.jobs j ON j.id = r.job_id
    GROUP BY j.name, j.queue, r.state ORDER BY count(*) DESC, j.name LIMIT 1000
"""

_FOLLOWERS = "SELECT follower, position FROM :schema.tracking ORDER BY follower LIMIT 1000"

# job_events_deadlines.
_MISSED_DEADLINES = """
    SELECT count(*) FROM (
        SELECT FROM :schema.job_events e
        WHERE e.topic = 'deadline.missed.1' AND e.recorded_at > clock_timestamp() - interval '1 day'
        LIMIT %(limit)s) missed
"""

# inbox_waiting (each partition's first rows) and inbox_refused; both stop early.
_INBOX = """
    SELECT w.count, w.oldest_s, (SELECT count(*) FROM (
               SELECT FROM :schema.inbox i WHERE i.refused_at IS NOT NULL LIMIT %(limit)s) refused)
    FROM (SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(i.asked_at)),
                                    0)::float8 AS oldest_s
          FROM (SELECT asked_at FROM :schema.inbox WHERE refused_at IS NULL LIMIT %(limit)s) i) w
"""

_COUNTERS = "SELECT name, value FROM :schema.counters ORDER BY name LIMIT 1000"


class PostgresHealth:
    """Looks at the store in a bounded number of bounded reads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def store_health(self) -> StoreHealth:
        """Errors: ``StoreUnavailable``, ``SchemaMissing``, ``SchemaTooNew``."""
        check_schema(self._database)
        server, offset_s, round_trip_s = self._clock()
        (late, lateness_s) = self._one(_LATE)
        position = log_position(self._database)
        slot_waits, slots_taken = self._one(_LANES)
        inbox_waiting, inbox_oldest_s, inbox_refused = self._one(_INBOX)
        claims_late, starts_late = (Lateness(*row) for row in self._all(_RECENT_LATENESS))
        leaders: dict[str | None, int] = dict(self._all(_PARTITIONS))
        return StoreHealth(
            server=server,
            schema=self._one(_SCHEMA)[0],
            schema_of_code=known_schema(),
            clock_offset_s=offset_s,
            round_trip_s=round_trip_s,
            position=position,
            jobs=dict(self._all(_JOBS)),
            late_fires=late,
            lateness_s=lateness_s,
            overdue_looks=self._one(_OVERDUE)[0],
            partitions=sum(leaders.values()),
            unowned=leaders.get(None, 0),
            leaders={name: count for name, count in leaders.items() if name is not None},
            unpublished=self._one(_UNPUBLISHED)[0],
            instances=[_instance(row) for row in self._all(_INSTANCES)],
            dead_letters=[DeadLetterDepth(*row) for row in self._all(_DEAD)],
            waiting=[Waiting(*row) for row in self._all(_WAITING)],
            followers=[Follower(name, at, position - at) for name, at in self._all(_FOLLOWERS)],
            alerts=self._alerts(),
            missed_deadlines=self._one(_MISSED_DEADLINES)[0],
            counters=dict(self._all(_COUNTERS)),
            claims_late=claims_late,
            starts_late=starts_late,
            slot_waits=slot_waits,
            slots_taken=slots_taken,
            inbox_waiting=inbox_waiting,
            inbox_oldest_s=inbox_oldest_s,
            inbox_refused=inbox_refused,
            lacking_grants=lacking(self._database),
        )

    def _alerts(self) -> list[OpenAlert]:
        return [
            OpenAlert(one.owner, one.condition, one.since, one.value, one.threshold, one.unreached)
            for one in alerts_of(self._database)
            if one.is_open and one.since is not None
        ]

    def _clock(self) -> tuple[str, float, float]:
        """The server's version, how far its clock is ahead of ours, and how well that is known."""
        self._one(_CLOCK)  # connects, so that the next one measures a round trip and no more
        before, started = datetime.now(UTC), perf_counter()
        instant, version = self._one(_CLOCK)
        round_trip_s = perf_counter() - started
        offset_s = (instant - before).total_seconds() - round_trip_s / 2
        return version, round(offset_s, 6), round(round_trip_s, 6)

    def _one(self, text: str) -> Row:
        return self._all(text)[0]

    def _all(self, text: str) -> list[Any]:
        params = {"limit": COUNT_LIMIT, "stuck": STUCK_AFTER}
        return self._database.query(self._database.sql(text), params)


def _instance(row: Row) -> Instance:
    details: dict[str, Any] = row[4]
    names = details.get("handlers")
    handlers = [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else None
    return Instance(*row[:4], handlers=handlers, details=details)
