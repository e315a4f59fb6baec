"""Rebuild, verify, roll back: the read models from the log, while the system runs.

    fill      the log is folded into a second set of tables, in windows, with no lock at all
    compare   under the log lock the last few events are folded and a snapshot is taken, some
              milliseconds; then both sets are compared in that snapshot, row by row
    exchange  under the log lock the last few events are folded and the sets are exchanged, in one
              transaction; what was in use is kept beside, for a rollback

A kill leaves the second set at a position, from which the next run goes on. A rollback is the same
with the kept set: it is filled with what has happened since, and exchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import sleep
from typing import Any, Final, Literal

from horolog.application.answers.plain import plain
from horolog.application.rebuild.filling import WINDOW, Filling
from horolog.application.rebuild.ports import Difference, Purpose, Rebuilds, Shadow
from horolog.application.rebuild.progress import Pace, Watch
from horolog.domain.errors import (
    InvalidSetting,
    NotAllowed,
    ProjectionStopped,
    StoreUnavailable,
)
from horolog.projections.changes import PROJECTIONS

MOST_KEPT: Final = 1_000
"""Differences that are kept in full; all are counted."""

COMPARE_TRIES: Final = 1_000
EXCHANGE_TRIES: Final = 100
PAUSE_S: Final = 0.2

Found = Callable[[Difference], None]


@dataclass(slots=True)
class Outcome:
    """What a run came to. ``differences`` were found at ``position``, before anything was
    exchanged; at most ``MOST_KEPT`` of ``difference_count`` are held."""

    purpose: Literal["rebuild", "verify", "rollback"]
    projections: tuple[str, ...]
    position: int = 0
    events: int = 0
    seconds: float = 0.0
    exchanged: bool = False
    longest_hold_s: float = 0.0
    difference_count: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def ok(self) -> bool:
        """Whether the tables that are in use now are what the log says."""
        return self.exchanged or self.difference_count == 0

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def projections_of(names: Sequence[str]) -> tuple[str, ...]:
    """The projections of these names, all of them where none is named; ``InvalidSetting``."""
    for name in names:
        if name not in PROJECTIONS:
            raise InvalidSetting(f"there is no projection {name!r}: {', '.join(PROJECTIONS)}")
    return tuple(name for name in PROJECTIONS if name in names or not names)


def rebuild(
    rebuilds: Rebuilds,
    names: Sequence[str] = (),
    *,
    actor: str,
    reason: str | None = None,
    watch: Watch | None = None,
    found: Found | None = None,
    window: int = WINDOW,
) -> Outcome:
    """Builds the projections anew, tells how they differed, and puts the new ones to use.

    ``window`` is how many events are folded at a time.

    Raises ``ProjectionStopped``, which names the event that could not be applied (the tables in use
    are untouched), ``NotAllowed`` while another process rebuilds, ``StoreUnavailable``.
    """
    return _run(rebuilds, "rebuild", names, actor, reason, watch, found, window)


def verify_projections(
    rebuilds: Rebuilds,
    names: Sequence[str] = (),
    *,
    actor: str,
    watch: Watch | None = None,
    found: Found | None = None,
    window: int = WINDOW,
) -> Outcome:
    """Tells how the projections differ from the log, and leaves them as they are.

    Where they do, the tables are kept for a rebuild to go on from. Raises as :func:`rebuild`.
    """
    return _run(rebuilds, "verify", names, actor, None, watch, found, window)


def roll_back(rebuilds: Rebuilds, *, watch: Watch | None = None) -> Outcome:
    """Puts the tables to use again that the last exchange took out of it.

    They are filled first with what has happened since. Raises ``NotAllowed`` where none are kept,
    or where occurrences have been pruned since.
    """
    with rebuilds.kept() as shadow:
        since = shadow.run.position
        if any(position > since for position, _ in rebuilds.pruned()):
            raise NotAllowed(
                "cannot roll back: occurrences were pruned since the rebuild, and the tables that"
                " were kept still hold them"
            )
        outcome = Outcome("rollback", shadow.run.projections)
        filling = Filling(rebuilds, shadow, Pace(since, watch))
        filling.fill()
        _exchange(shadow, filling)
        outcome.exchanged = True
        shadow.state("rolled_back")
        return _closed(outcome, shadow, filling)


def _run(
    rebuilds: Rebuilds,
    purpose: Purpose,
    names: Sequence[str],
    actor: str,
    reason: str | None,
    watch: Watch | None,
    found: Found | None,
    window: int,
) -> Outcome:
    projections = projections_of(names)
    with rebuilds.begin(purpose, projections, actor=actor, reason=reason) as shadow:
        outcome = Outcome(purpose, projections)
        filling = Filling(rebuilds, shadow, Pace(shadow.run.position, watch), window)
        try:
            filling.fill()
            shadow.finish()
            filling.fill()
            _compare(shadow, filling, outcome, found)
            if purpose == "rebuild":
                _exchange(shadow, filling)
                outcome.exchanged = True
        except ProjectionStopped as error:
            shadow.state("stopped", error=str(error))
            raise
        count = outcome.difference_count
        if outcome.exchanged:
            shadow.state("exchanged", differences=count)
        else:
            shadow.state("kept" if count else "dropped", differences=count)
        return _closed(outcome, shadow, filling)


def _compare(shadow: Shadow, filling: Filling, outcome: Outcome, found: Found | None) -> None:
    for _ in range(COMPARE_TRIES):
        differences = shadow.compare(filling.last)
        if differences is not None:
            break
        filling.fill()
    else:
        raise StoreUnavailable(
            "the log grows faster than it can be folded: what was folded is kept, run it again"
            " when less is going on"
        )
    for difference in differences:
        if difference.projection not in outcome.projections:
            continue
        outcome.difference_count += 1
        if len(outcome.differences) < MOST_KEPT:
            outcome.differences.append(difference)
        if found is not None:
            found(difference)


def _exchange(shadow: Shadow, filling: Filling) -> None:
    for _ in range(EXCHANGE_TRIES):
        filling.fill()
        if shadow.exchange(filling.last):
            return
        sleep(PAUSE_S)
    raise StoreUnavailable(
        "the tables could not be exchanged: some transaction holds them all the time (a long"
        " query on next_runs, jobs or executions?); what was rebuilt is kept, run it again"
    )


def _closed(outcome: Outcome, shadow: Shadow, filling: Filling) -> Outcome:
    outcome.position = shadow.run.position
    outcome.longest_hold_s = round(shadow.longest_hold_s, 4)
    progress = filling.pace.progress(outcome.position, outcome.position)
    outcome.events, outcome.seconds = progress.events, round(progress.seconds, 3)
    return outcome
