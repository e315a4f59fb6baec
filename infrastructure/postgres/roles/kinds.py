"""The kinds of process, and what each needs of the database: no more, and nothing by hand.

Nobody here may write to the log or to a read model except through ``append``, which looks at what
the kind may say (migrations/0017). Without this, whoever can give a command could also forge the
outcome of a run, and whoever runs handlers could register jobs.

A client gives commands and asks. A scanner claims, looks after what was lost, carries out what lies
in the inbox (the same commands) and alerts. A worker attempts and tells outcomes. An auditor reads
all but keys and the secrets of alerts. The owner migrates, prunes, rebuilds, and has no list.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from horolog.domain import alert_events, job_events, log_events, partition, subject_events
from horolog.domain import occurrence_events as occurrence
from horolog.domain.event import Event

Kind = Literal["client", "scanner", "worker", "auditor"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

OWNER: Final = "owner"


@dataclass(frozen=True, slots=True)
class Grant:
    """A privilege on a thing of the namespace's schema, or on some ``columns`` of a table."""

    privilege: str
    on: Literal["TABLE", "SEQUENCE", "FUNCTION"]
    name: str
    columns: tuple[str, ...] = ()


_READ: Final = (
    "job_events", "occurrence_events", "chain", "chain_pruned", "log", "next_runs", "jobs",
    "successes_pruned",
    "executions", "dead_letters", "partitions", "instances", "counters", "tracking", "rebuilds",
    "lane_slots", "lane_buckets", "lanes_in_use", "queue_limits", "inbox", "migrations", "roles",
    "may_append",
)  # fmt: skip
"""What everybody reads whole."""

_READ_IN_PART: Final = {
    # Not what messages are signed with, not the wrapped keys, not webhooks and commands.
    "namespace": ("only_row", "name", "partitions", "created_at", "log", "logs", "set_id"),
    "subject_keys": ("subject", "id", "master", "made_at", "forgotten_at"),
    "alert_rules": (
        "id", "owner", "dead_letters", "dead_letter_age", "deadlines", "changed_at", "changed_by",
    ),
}  # fmt: skip


def _tables(privileges: str, *names: str) -> tuple[Grant, ...]:
    return tuple(Grant(one, "TABLE", name) for name in names for one in privileges.split(", "))


def _functions(*names: str) -> tuple[Grant, ...]:
    return tuple(Grant("EXECUTE", "FUNCTION", name) for name in names)


_EVERYBODY: Final = (
    *_tables("SELECT", *_READ),
    *(Grant("SELECT", "TABLE", name, columns) for name, columns in _READ_IN_PART.items()),
    Grant("SELECT", "SEQUENCE", "positions"),
)

GRANTS: Final[dict[Kind, tuple[Grant, ...]]] = {
    "auditor": _EVERYBODY,
    "client": (
        *_EVERYBODY,
        *_functions(
            "append", "limit_queue", "inbox_put", "inbox_retry", "inbox_discard", "subject_key"
        ),
        *_tables("SELECT", "subject_keys"),
        *_tables("SELECT, INSERT, UPDATE, DELETE", "alert_rules"),
    ),
    "scanner": (
        *_EVERYBODY,
        *_functions("append", "renew_leases", "leave", "mark_published", "extend_windows"),
        *_functions("create_month_partitions"),
        *_tables("SELECT", "namespace", "subject_keys", "alert_rules"),
        *_tables("UPDATE, DELETE", "inbox"),
        *_tables("INSERT, UPDATE", "counters"),
        *_tables("INSERT", "at_commit"),
    ),
    "worker": (
        *_EVERYBODY,
        *_functions("append", "announce", "retire", "extend_attempts"),
        *_tables("SELECT", "namespace", "subject_keys"),
        *_tables("INSERT, UPDATE", "counters"),
        *_tables("INSERT", "at_commit"),
        *_tables("INSERT, UPDATE, DELETE", "tracking"),
    ),
}

_COMMANDS: Final[tuple[type[Event], ...]] = (
    job_events.Registered,
    job_events.Rescheduled,
    job_events.PayloadChanged,
    job_events.PoliciesChanged,
    job_events.Paused,
    job_events.Resumed,
    job_events.Triggered,
    job_events.BackfillRequested,
    job_events.FiresSkipped,
    job_events.ZoneDataChanged,
    job_events.Cancelled,
    job_events.Completed,
    occurrence.CancelRequested,
    occurrence.Skipped,
    occurrence.Recalled,
)
"""What a client says, and a scanner for it."""

SAYS: Final[dict[Kind, tuple[type[Event], ...]]] = {
    "auditor": (),
    "client": (
        *_COMMANDS,
        occurrence.Replayed,
        occurrence.Discarded,
        alert_events.AlertRuleSet,
        alert_events.AlertRuleRemoved,
        subject_events.Forgotten,
    ),
    "scanner": (
        *_COMMANDS,
        occurrence.Claimed,
        occurrence.Lost,
        occurrence.DeadLettered,
        partition.Elected,
        partition.Released,
        log_events.DeadlineMissed,
        alert_events.AlertRaised,
        alert_events.AlertRepeated,
        alert_events.AlertResolved,
        alert_events.AlertDelivered,
        alert_events.AlertDeliveryFailed,
    ),
    "worker": (
        occurrence.Attempted,
        occurrence.Succeeded,
        occurrence.Failed,
        occurrence.Snoozed,
        occurrence.CancelRequested,
        occurrence.Stopped,
        occurrence.Skipped,
        occurrence.DeadLettered,
    ),
}
"""What each may append; what is of nobody (pruning, skipped events) is of the owner alone."""


def topics(kind: Kind) -> list[str]:
    """The topics of the events that a kind may append, in their order."""
    return sorted(event.topic for event in SAYS[kind])
