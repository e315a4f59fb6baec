"""Every fire time of a job ran or is accounted for, and nothing ran that was none (invariant 5).

Read here are the events that move a job on: a registration, another schedule, a first claim, a
range that was dropped, a pause and its end. Each job that is alive has a :class:`Chain`; memory
grows with these jobs and not with the log.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from horolog.application.verify.chain import Chain, Link, shown, span
from horolog.application.verify.ports import ScannedEvent, ScansLog
from horolog.application.verify.reading import job_named
from horolog.application.verify.report import Place, Report
from horolog.application.verify.said import Said, kept, said_by
from horolog.domain.ids import occurrence_key
from horolog.projections.pruned import Pruned

DECIDING: Final = timedelta(seconds=10)
"""A change is decided a moment before it is recorded: what came due in between it did not see."""

_LEFT_OUT: Final = frozenset({"calendar", "gap"})
"""What a schedule states and does not keep lies between its fire times."""


class FireTimes:
    """The chains of all living jobs, up to the position read so far."""

    def __init__(self, log: ScansLog, report: Report, pruned: Pruned) -> None:
        self._log = log
        self._pruned = pruned
        self._moved_to = 0
        self._last_move = pruned.last_move()
        self._report = report
        self._chains: dict[bytes, Chain] = {}
        self._open: set[bytes] = set()

    def see_job(self, event: ScannedEvent, kind: str, state: dict[str, Any]) -> None:
        """The next event of a job's own stream."""
        self._move_on(event.position)
        chain = self._chain(event.stream, event.recorded_at)
        match kind:
            case "registered":
                self._begin(event, state["definition"]["schedule"], state)
            case "rescheduled":
                if chain is not None:
                    self._leave(chain, event)
                began = self._begin(event, state["schedule"], state)
                began.paused = chain is not None and chain.paused
            case "fires_skipped":
                self._drop(chain, event, state)
            case "paused" | "resumed" | "zone_data_changed" if chain is not None:
                self._go_on(chain, event, kind, state)
            case "completed" | "cancelled" if chain is not None:
                self._end(chain, event, kind)
            case "backfill_requested":
                self._compare_backfill(event, state)
            case _:
                pass

    def see_ordered_claim(
        self, event: ScannedEvent, state: dict[str, Any], *, ordered: bool
    ) -> None:
        """The first event of an extra run; ``ordered``: a job's event had asked for it."""
        if not ordered:
            self._violate(f"a {state['kind']} was claimed that nobody ordered", event.place)

    def see_first_claim(self, event: ScannedEvent, state: dict[str, Any]) -> None:
        """The first event of an occurrence that the schedule of a job has."""
        self._move_on(event.position)
        here = event.place
        job, fire = job_named(state["job_id"]), datetime.fromisoformat(state["fire_time"])
        chain = self._chain(job, event.recorded_at)
        if event.stream != occurrence_key(job, fire):
            self._refuse(job, fire, "whose occurrence of then has another id", here)
        elif state.get("fires") is None:
            self._refuse(job, fire, "which did not move on from it", here)
        elif chain is None:
            self._refuse(job, fire, "which has no fire time left", here)
        else:
            if chain.paused:
                self._refuse(job, fire, "which is paused", chain.last, here)
            following, tzdata = _instant(state.get("next_fire")), state.get("tzdata", "")
            self._join(chain, Link(fire, fire, 1, following, state["fires"], tzdata, here))

    def settle(self) -> None:
        """At the end of the log: nothing can come any more that would close a hole."""
        for job in list(self._open):
            self._close(self._chains[job])

    def _move_on(self, position: int) -> None:
        """Takes the word of the log for the claims before ``position`` that were pruned.

        Their whole append has to be over: what was dropped on the way to a claim is recorded behind
        it, and comes first.
        """
        if self._moved_to >= self._last_move:
            return
        for move in self._pruned.moves(self._moved_to, position):
            if move.append_position >= position:
                break
            self._moved_to = move.position
            chain = self._chains.get(move.job_id.bytes)
            if chain is not None:
                self._close(chain)
                if move.fires > chain.fires:
                    chain.next, chain.fires = move.next_fire, move.fires

    def _chain(self, job: bytes, recorded_at: datetime) -> Chain | None:
        """The job's chain; what an earlier append left open is closed."""
        chain = self._chains.get(job)
        if chain is None:
            return None
        if chain.ahead and chain.stamp != recorded_at:
            self._close(chain)
        chain.stamp = recorded_at
        return chain

    def _begin(self, event: ScannedEvent, schedule: dict[str, Any], state: dict[str, Any]) -> Chain:
        here, following = event.place, _instant(state.get("next_fire"))
        chain = Chain(event.stream, kept(schedule), following, here)
        chain.stamp = event.recorded_at
        self._chains[event.stream] = chain
        said = said_by(chain.schedule, state.get("tzdata", ""))
        if said is None:
            return chain
        self._compare(said, following, here)
        first = said.first_from(event.recorded_at)
        if first is not None and (following is None or following > first):
            self._violate(f"begins with {shown(following)} and not with {shown(first)}", here)
        return chain

    def _drop(self, chain: Chain | None, event: ScannedEvent, state: dict[str, Any]) -> None:
        here, following = event.place, _instant(state.get("next_fire"))
        first, last = (datetime.fromisoformat(state[name]) for name in ("first", "last"))
        if chain is None:
            self._violate(f"drops {span(first, last)} of a job that has no fire time left", here)
        elif state["cause"] not in _LEFT_OUT:
            count, fires = state.get("count"), state.get("fires", 0)
            self._join(
                chain, Link(first, last, count, following, fires, state.get("tzdata", ""), here)
            )
        elif following != chain.next and not chain.is_pruned(self._pruned):
            self._violate(
                f"goes on at {shown(following)}, where {shown(chain.next)} comes next",
                chain.last,
                here,
            )

    def _join(self, chain: Chain, link: Link) -> None:
        chain.join(link, self._report)
        if chain.ahead:
            self._open.add(chain.job)
        elif self._open:
            self._open.discard(chain.job)

    def _close(self, chain: Chain) -> None:
        chain.close(self._report, self._pruned)
        self._open.discard(chain.job)

    def _leave(self, chain: Chain, event: ScannedEvent) -> None:
        """Another schedule: what was due of the old one must have been accounted for."""
        self._close(chain)
        if chain.is_pruned(self._pruned):
            return
        if chain.next is not None and chain.next < event.recorded_at - DECIDING:
            self._violate(
                f"{chain.next.isoformat()} was due before the schedule was changed, and nothing"
                " says what became of it",
                chain.last,
                event.place,
            )

    def _go_on(self, chain: Chain, event: ScannedEvent, kind: str, state: dict[str, Any]) -> None:
        here, following = event.place, _instant(state.get("next_fire"))
        self._close(chain)
        if kind == "paused":
            chain.paused = True
            return
        if kind == "resumed":
            chain.paused = False
            if following != chain.next and not chain.is_pruned(self._pruned):
                what = f"goes on at {shown(following)}, where {shown(chain.next)} comes next"
                self._violate(what, chain.last, here)
        elif (said := said_by(chain.schedule, state.get("tzdata", ""))) is not None:
            self._compare(said, following, here)
        chain.next, chain.last = following, here

    def _end(self, chain: Chain, event: ScannedEvent, kind: str) -> None:
        self._close(chain)
        if kind == "completed" and chain.next is not None and not chain.is_pruned(self._pruned):
            self._violate(
                f"is completed, and {chain.next.isoformat()} is left", chain.last, event.place
            )
        del self._chains[event.stream]

    def _compare_backfill(self, event: ScannedEvent, state: dict[str, Any]) -> None:
        """What is run afterwards was a fire time of the schedule that it names."""
        version = state.get("definition_version") or event.version
        stated = [schedule for v, schedule in self._log.schedules(event.stream) if v <= version]
        said = said_by(kept(stated[-1]), state.get("tzdata", "")) if stated else None
        if said is not None:
            for fire in state["fires"]:
                self._compare(said, datetime.fromisoformat(fire), event.place)

    def _compare(self, said: Said, fire: datetime | None, here: Place) -> None:
        if fire is not None and not said.has(fire):
            what = f"{fire.isoformat()} is no fire time of the schedule, as it then was"
            self._violate(what, here)

    def _refuse(self, job: bytes, fire: datetime, why: str, *places: Place) -> None:
        claimed = f"{fire.isoformat()} was claimed of job {UUID(bytes=job)}"
        self._violate(f"{claimed}, {why}", *places)

    def _violate(self, message: str, *places: Place) -> None:
        self._report.violate(5, message, *places)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
