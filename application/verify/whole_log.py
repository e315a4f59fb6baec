"""The check itself: once through the log in its order, then the index in one snapshot.

The same for the whole log and for a share of it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from horolog.application.verify.budgets import Budgets
from horolog.application.verify.fences import Fences
from horolog.application.verify.fire_times import FireTimes
from horolog.application.verify.index import check_index
from horolog.application.verify.lives import Lives, instant
from horolog.application.verify.ports import ScannedEvent, ScansLog
from horolog.application.verify.reading import job_named, parts_of, read_state
from horolog.application.verify.report import Report
from horolog.application.verify.share import WHOLE, Share
from horolog.domain.orders import backfilled_id

PAGE = 5_000
STRETCH = 250_000
"""Positions that are looked through at once for one that is taken twice."""

Progress = Callable[[int], None]
"""Told the position that was reached."""


def verify(
    log: ScansLog,
    *,
    progress: Progress | None = None,
    page: int = PAGE,
    share: Share = WHOLE,
    stretch: int = STRETCH,
) -> Report:
    """Checks the whole log and the index; the report says what was counted and what is wrong.

    With a ``share``, what belongs to that: ``merged`` makes one report of all of them. ``log`` may
    then leave out what is not looked at: of an occurrence that another share owns all but its first
    event, and that too if its job is another's; of such a job what orders no run.

    Memory grows with what is unfinished and alive, not with the log. Raises ``StoreUnavailable``.
    """
    check = _Check(log, share)
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
        check_index(snapshot, check.lives.unfinished, check.report, share)
    if share.of > 1:
        check.look_for_doubles(log, snapshot.position, stretch)
    check.report.unfinished = len(check.lives.unfinished)
    return check.report


class _Check:
    """Where the one pass through the log stands."""

    def __init__(self, log: ScansLog, share: Share) -> None:
        self._share = share
        self.report = Report()
        self.budgets = Budgets(log, self.report)
        self.lives = Lives(log, self.report, self.budgets)
        self.fences = Fences(self.report)
        self.pruned = log.pruned()
        self.fire_times = FireTimes(log, self.report, self.pruned)

    def see(self, events: Sequence[ScannedEvent]) -> None:
        for event in events:
            mine = self._share.owns(event.stream)
            if event.position <= self.report.position and self._share.of == 1:
                self._refuse(event, f"position {event.position} is taken twice")
            self.report.position = event.position
            self.report.events += mine
            state = read_state(event)
            if state is None:
                if mine:
                    self._refuse(event, f"{event.topic} cannot be read")
                continue
            about, kind = parts_of(event.topic)
            try:
                if about == "occurrence":
                    self._see_occurrence(event, kind, state, mine=mine)
                else:
                    self._see(event, about, kind, state, mine=mine)
            except (KeyError, TypeError, ValueError) as error:
                # Of what belongs to another share only the fire time was looked at, and only here.
                if mine or about == "occurrence":
                    self._refuse(event, f"{event.topic} lacks what it must state: {error!r}")

    def look_for_doubles(self, log: ScansLog, until: int, stretch: int) -> None:
        """Positions that two events have, which shares cannot see: each looks through its stretches
        of the log."""
        for number, low in enumerate(range(0, until, stretch)):
            if number % self._share.of == self._share.number:
                for event in log.doubles(low, min(low + stretch, until)):
                    self._refuse(event, f"position {event.position} is taken twice")

    def _refuse(self, event: ScannedEvent, why: str) -> None:
        self.report.violate(1, why, event.place)

    def _see_occurrence(
        self, event: ScannedEvent, kind: str, state: dict[str, Any], *, mine: bool
    ) -> None:
        """Its life belongs to its owner, and its fire time to that of its job."""
        if kind == "claimed":
            if mine:
                self.fences.claimed(event, state)
            if event.version == 1:
                if state.get("kind", "schedule") != "schedule":
                    if mine:
                        ordered = event.stream in self.lives.unfinished
                        self.fire_times.see_ordered_claim(event, state, ordered=ordered)
                elif self._share.of == 1 or self._share.owns(job_named(state["job_id"])):
                    self.fire_times.see_first_claim(event, state)
        if mine:
            self.lives.see(event, kind, state)

    def _see(
        self, event: ScannedEvent, about: str, kind: str, state: dict[str, Any], *, mine: bool
    ) -> None:
        match about:
            case "job":
                self._see_job(event, kind, state, mine=mine)
                if mine:
                    self.fire_times.see_job(event, kind, state)
            case "partition":
                if kind == "elected":
                    self.fences.elected(event, state, told=mine)
                else:
                    self.fences.released(state)
            case _:
                pass

    def _see_job(
        self, event: ScannedEvent, kind: str, state: dict[str, Any], *, mine: bool
    ) -> None:
        match kind:
            case "registered":
                self.report.jobs += mine
            case "triggered":
                occurrence = UUID(state["occurrence_id"]).bytes
                self._order(occurrence, event, instant(state["fire_time"]))
            case "backfill_requested":
                job = UUID(bytes=event.stream)
                due, salt = instant(state.get("due")), state.get("salt", "")
                spacing = timedelta(seconds=state.get("spacing_s", 0.0))
                for number, text in enumerate(state["fires"]):
                    identity = backfilled_id(job, datetime.fromisoformat(text), salt).bytes
                    turn = None if due is None else due + number * spacing
                    self._order(identity, event, turn)
            case _:
                pass

    def _order(self, occurrence: bytes, event: ScannedEvent, due: datetime | None) -> None:
        mine = self._share.owns(occurrence)
        if mine and not self.pruned.ended(UUID(bytes=occurrence), event.position):
            self.lives.order(occurrence, event.stream, due)
