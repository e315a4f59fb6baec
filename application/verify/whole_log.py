"""The check itself: once through the log in its order, then the index in one snapshot."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from horolog.application.verify.budgets import Budgets
from horolog.application.verify.fences import Fences
from horolog.application.verify.fire_times import FireTimes
from horolog.application.verify.index import check_index
from horolog.application.verify.lives import Lives, instant
from horolog.application.verify.ports import ScansLog, StoredEvent
from horolog.application.verify.reading import parts_of, read_state
from horolog.application.verify.report import Evidence, Report
from horolog.domain.orders import backfilled_id

PAGE = 5_000

Progress = Callable[[int], None]
"""Told the position that was reached."""


def verify(log: ScansLog, *, progress: Progress | None = None, page: int = PAGE) -> Report:
    """Checks the whole log and the index; the report says what was counted and what is wrong.

    Memory grows with what is unfinished and alive, not with the log. Raises ``StoreUnavailable``.
    """
    check = _Check(log)
    full = True
    while full:
        events = log.page(check.report.position, page)
        check.see(events)
        full = len(events) == page
        if progress is not None:
            progress(check.report.position)
    with log.snapshot() as snapshot:
        # What was appended since, up to the snapshot: all of it is visible to any reader by now.
        while check.report.position < snapshot.position:
            events = log.page(check.report.position, page)
            check.see([event for event in events if event.position <= snapshot.position])
            if not events or events[-1].position >= snapshot.position:
                break
        check.budgets.settle()
        check.fire_times.settle()
        check_index(snapshot, check.lives.unfinished, check.report)
    check.report.unfinished = len(check.lives.unfinished)
    return check.report


class _Check:
    """Where the one pass through the log stands."""

    def __init__(self, log: ScansLog) -> None:
        self.report = Report()
        self.budgets = Budgets(log, self.report)
        self.lives = Lives(log, self.report, self.budgets)
        self.fences = Fences(self.report)
        self.pruned = log.pruned()
        self.fire_times = FireTimes(log, self.report, self.pruned)

    def see(self, events: Sequence[StoredEvent]) -> None:
        for event in events:
            if event.position <= self.report.position:
                self._refuse(event, f"position {event.position} is taken twice")
            self.report.position = event.position
            self.report.events += 1
            state = read_state(event)
            if state is None:
                self._refuse(event, f"{event.topic} cannot be read")
                continue
            try:
                self._see(event, state)
            except (KeyError, TypeError, ValueError) as error:
                self._refuse(event, f"{event.topic} lacks what it must state: {error!r}")

    def _refuse(self, event: StoredEvent, why: str) -> None:
        self.report.violate(1, why, Evidence(event.stream, event.version, event.position))

    def _see(self, event: StoredEvent, state: dict[str, Any]) -> None:
        about, kind = parts_of(event.topic)
        match about:
            case "occurrence":
                if kind == "claimed":
                    self.fences.claimed(event, state)
                    if event.version == 1:
                        ordered = event.stream in self.lives.unfinished
                        self.fire_times.see_first_claim(event, state, ordered=ordered)
                self.lives.see(event, kind, state)
            case "job":
                self._see_job(event, kind, state)
                self.fire_times.see_job(event, kind, state)
            case "partition":
                if kind == "elected":
                    self.fences.elected(event, state)
                else:
                    self.fences.released(state)
            case _:
                pass

    def _see_job(self, event: StoredEvent, kind: str, state: dict[str, Any]) -> None:
        match kind:
            case "registered":
                self.report.jobs += 1
            case "triggered":
                occurrence = UUID(state["occurrence_id"])
                self._order(occurrence, event, instant(state["fire_time"]))
            case "backfill_requested":
                due, salt = instant(state.get("due")), state.get("salt", "")
                spacing = timedelta(seconds=state.get("spacing_s", 0.0))
                for number, text in enumerate(state["fires"]):
                    identity = backfilled_id(event.stream, datetime.fromisoformat(text), salt)
                    turn = None if due is None else due + number * spacing
                    self._order(identity, event, turn)
            case _:
                pass

    def _order(self, occurrence: UUID, event: StoredEvent, due: datetime | None) -> None:
        if not self.pruned.ended(occurrence, event.position):
            self.lives.order(occurrence, event.stream, due)
