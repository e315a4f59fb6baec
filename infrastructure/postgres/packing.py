"""A batch of decisions as the arguments of the database function ``append`` (migrations/0003).

Parallel arrays, one element for each row, beside the number (from 1) of the decision that the row
belongs to: SQL writes the rows of those that it accepts. All of this is done before the log lock is
taken.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from horolog.application.decision import Decision, GuardKind
from horolog.application.log import Fences
from horolog.domain.event import Event
from horolog.domain.occurrence import Phase
from horolog.infrastructure.postgres.arrays import (
    Booleans,
    Bytes,
    Floats,
    Instants,
    Ints,
    PackedArray,
    SmallInts,
    Texts,
    Uuids,
)

ARGUMENTS = 48
"""How many arguments the function takes."""

_GUARDS: dict[tuple[GuardKind, Phase | None], int] = {
    ("nothing", None): 0,
    ("next_run", None): 1,
    ("job", None): 2,
    ("partition", None): 3,
    ("next_run", "scheduled"): 4,
    ("next_run", "claimed"): 5,
    ("next_run", "running"): 6,
    ("next_run", "retrying"): 7,
    ("next_run", "stopping"): 8,
}


# What most appends have none of, packed once.
_NO_DROPS: list[PackedArray] = [Ints(()), Uuids(())]
_NO_JOB_MOVES: list[PackedArray] = [Ints(()), Uuids(()), Ints(()), Texts(()), Ints(())]
_NO_EXECUTIONS: list[PackedArray] = [
    *(Ints(()), Uuids(()), Uuids(()), SmallInts(()), Instants(())),
    *(Texts(()), Texts(()), Ints(()), Ints(()), Ints(())),
]


class EventRow(NamedTuple):
    """An event as it is stored; ``of`` is the number of its decision."""

    of: int
    stream: UUID
    version: int
    topic: str
    state: bytes
    in_occurrences: bool


def packed(
    decisions: Sequence[Decision],
    fences: Fences | None,
    news_horizon_s: float,
    events: Sequence[EventRow] | None = None,
) -> list[Any]:
    """The arguments of the database function, in its order.

    ``events`` are taken from the decisions unless they are given, in an order of their own.
    """
    tokens: Mapping[int, int] = {} if fences is None else fences.tokens
    guards = [decision.guard for decision in decisions]
    rows = event_rows(decisions) if events is None else events
    return [
        SmallInts([_GUARDS[guard.kind, guard.state] for guard in guards]),
        Uuids([guard.id for guard in guards]),
        Ints([guard.version for guard in guards]),
        Instants([guard.due for guard in guards]),
        Ints([guard.attempt or 0 for guard in guards]),
        SmallInts([decision.partition for decision in decisions]),
        None if fences is None else fences.instance,
        SmallInts(list(tokens.keys())),
        Ints(list(tokens.values())),
        *_packed_events(rows),
        *_packed_next_runs(decisions),
        *_packed_drops(decisions),
        *_packed_executions(decisions),
        *_packed_job_moves(decisions),
        _packed_cold(decisions),
        news_horizon_s,
    ]


def event_rows(decisions: Sequence[Decision]) -> list[EventRow]:
    """The events of all decisions, one after the other."""
    return [
        EventRow(number, e.stream, e.version, e.event.topic, e.state(), in_occurrences(e.event))
        for number, decision in enumerate(decisions, 1)
        for e in decision.events
    ]


def in_occurrences(event: Event) -> bool:
    """Which of the two tables an event is kept in."""
    return _is_of_occurrence(event.topic)


@cache
def _is_of_occurrence(topic: str) -> bool:
    return topic.startswith("occurrence.")


def _packed_events(rows: Sequence[EventRow]) -> list[PackedArray]:
    of, streams, versions, topics, states, tables = zip(*rows, strict=True) if rows else [()] * 6
    return [
        Ints(of),
        Uuids(streams),
        Ints(versions),
        Texts(topics),
        Bytes(states),
        Booleans(tables),
    ]


def _packed_next_runs(decisions: Sequence[Decision]) -> list[PackedArray]:
    of, rows = _numbered(decisions, "next_runs")
    return [
        Ints(of),
        Uuids([row.id for row in rows]),
        Uuids([row.job_id for row in rows]),
        SmallInts([row.partition for row in rows]),
        Instants([row.due_at for row in rows]),
        Floats([row.look_after_s for row in rows]),
        Booleans([row.look for row in rows]),
        Texts([row.state for row in rows]),
        Texts([row.kind for row in rows]),
        Ints([row.version for row in rows]),
        Instants([row.fire_time for row in rows]),
        Ints([row.attempt for row in rows]),
        Ints([row.failures for row in rows]),
        Ints([row.fires for row in rows]),
    ]


def _packed_drops(decisions: Sequence[Decision]) -> list[PackedArray]:
    of, ids = _numbered(decisions, "dropped")
    return [Ints(of), Uuids(ids)] if ids else _NO_DROPS


def _packed_executions(decisions: Sequence[Decision]) -> list[PackedArray]:
    of, rows = _numbered(decisions, "executions")
    if not rows:
        return _NO_EXECUTIONS
    return [
        Ints(of),
        Uuids([row.id for row in rows]),
        Uuids([row.job_id for row in rows]),
        SmallInts([row.partition for row in rows]),
        Instants([row.fire_time for row in rows]),
        Texts([row.kind for row in rows]),
        Texts([row.state for row in rows]),
        Ints([row.version for row in rows]),
        Ints([row.attempt for row in rows]),
        Ints([row.failures for row in rows]),
    ]


def _packed_job_moves(decisions: Sequence[Decision]) -> list[PackedArray]:
    of, rows = _numbered(decisions, "job_moves")
    if not rows:
        return _NO_JOB_MOVES
    return [
        Ints(of),
        Uuids([row.id for row in rows]),
        Ints([row.version for row in rows]),
        Texts([row.status for row in rows]),
        Ints([row.fires for row in rows]),
    ]


def _packed_cold(decisions: Sequence[Decision]) -> Jsonb | None:
    """The rows that change seldom, as one document; ``None`` on the hot path."""
    tables = {name: rows for name, rows in _cold_tables(decisions) if rows}
    return Jsonb(tables, dumps=_dumps) if tables else None


def _cold_tables(decisions: Sequence[Decision]) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    for name in ("jobs", "dead_letters", "leaders"):
        numbers, rows = _numbered(decisions, name)
        yield (
            name,
            [{"of": number, **_fields(row)} for number, row in zip(numbers, rows, strict=True)],
        )
    yield (
        "revived",
        [
            {"of": number, "id": identity, "finished": part == "discarded"}
            for part in ("revived", "discarded")
            for number, identity in zip(*_numbered(decisions, part), strict=True)
        ],
    )
    for part in ("subjects", "forgotten"):
        yield (
            part,
            [
                {"of": number, "subject": subject}
                for number, decision in enumerate(decisions, 1)
                for subject in getattr(decision, part)
            ],
        )
    yield (
        "lanes",
        [
            {"of": number, "turn": turn, "claims": decision.claims, **_fields(lane)}
            for number, decision in enumerate(decisions, 1)
            for turn, lane in enumerate(decision.lanes)
        ],
    )


def _fields(row: object) -> dict[str, Any]:
    """A row's fields by name; not ``asdict``, which copies each value through and through."""
    return {name: getattr(row, name) for name in _names(type(row))}


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _dumps(document: object) -> str:
    return json.dumps(document, default=str, separators=(",", ":"))


def _numbered(decisions: Sequence[Decision], part: str) -> tuple[list[int], list[Any]]:
    """One kind of row of all decisions, with the number (from 1) of the decision of each."""
    found: list[list[Any]] = list(map(attrgetter(part), decisions))
    rows = list(chain.from_iterable(found))
    if not rows:
        return [], rows  # as of most parts
    return [number for number, some in enumerate(found, 1) for _ in some], rows
