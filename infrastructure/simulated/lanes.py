"""Lanes in memory: slots and buckets counted as the database does it (migrations/0008)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import floor

from horolog.application.decision import Decision
from horolog.application.log import Verdict
from horolog.domain.lanes import Lane
from horolog.infrastructure.simulated.tables import Tables

_TURNS = 2
"""A decision has the lane of its key and that of its queue, in this order."""


def refuse_full(
    tables: Tables, decisions: Sequence[Decision], verdicts: list[Verdict], stamp: datetime
) -> None:
    """Refuses what finds a lane full; its row waits in that lane."""
    for turn in range(_TURNS):
        upto: dict[str, int] = {}
        for number, decision in enumerate(decisions):
            if verdicts[number] != "accepted" or len(decision.lanes) <= turn:
                continue
            lane = decision.lanes[turn]
            upto[lane.name] = upto.get(lane.name, 0) + decision.claims
            if not _has_room(tables, lane, upto[lane.name], stamp):
                verdicts[number] = "full"
                _park(tables, decision, lane, stamp)


def take_slots(tables: Tables, accepted: Sequence[Decision], stamp: datetime) -> None:
    """The slots of claims that were accepted, and what they took of the rates."""
    for decision in accepted:
        for lane in decision.lanes:
            if lane.limit is not None:
                claimed = {run.id for run in decision.next_runs if run.look}
                tables.slots.setdefault(lane.name, set()).update(claimed)
            if lane.rate is not None:
                begins = max(tables.full_at.get(lane.name, stamp), stamp)
                spent = timedelta(seconds=decision.claims / lane.rate)
                tables.full_at[lane.name] = begins + spent


def release_slots(tables: Tables, accepted: Sequence[Decision]) -> list[str]:
    """The slots of attempts that have ended are free; the lanes in which some became free."""
    freed: list[str] = []
    for decision in accepted if tables.slots else ():
        ended = {*decision.dropped, *(run.id for run in decision.next_runs if not run.look)}
        for name, slots in tables.slots.items():
            if slots & ended:
                slots -= ended
                freed.append(name)
    return list(dict.fromkeys(freed))


def waits(tables: Tables, lane: str) -> bool:
    """Whether a row waits in the lane."""
    return any(row.lane == lane for row in tables.next_runs.values())


def wake(tables: Tables, lane: str) -> None:
    """What waits in the lane is among the fires again."""
    for identity, row in tables.next_runs.items():
        if row.lane == lane:
            tables.next_runs[identity] = replace(row, lane=None, turn=None)
            tables.written.add(identity)


def _has_room(tables: Tables, lane: Lane, wanted: int, stamp: datetime) -> bool:
    return wanted <= free_slots(tables, lane, stamp)


def free_slots(tables: Tables, lane: Lane, stamp: datetime) -> int:
    """How many more may be claimed in the lane at ``stamp``; many, where nothing limits it."""
    free = 1 << 30
    if lane.limit is not None:
        free = lane.limit - len(tables.slots.get(lane.name, ()))
    if lane.rate is not None:
        owed_s = (tables.full_at.get(lane.name, stamp) - stamp).total_seconds()
        left = max(1.0, lane.rate) - lane.rate * max(0.0, owed_s)
        free = min(free, floor(1e-6 + left))
    return free


def _park(tables: Tables, decision: Decision, lane: Lane, stamp: datetime) -> None:
    row = tables.next_runs.get(decision.guard.id)
    if row is None or row.run.look:
        return
    turn = None if lane.rate is None else stamp + timedelta(seconds=1 / lane.rate)
    tables.next_runs[decision.guard.id] = replace(row, lane=lane.name, turn=turn)
    tables.written.add(decision.guard.id)
