"""Pruning, month by month: look, archive, say it in the log, and let the month go.

Each month is a unit: after a kill the months before it are gone, it is whole, and the next run
begins with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from time import sleep
from typing import Any, Final
from uuid import UUID

from horolog.application.answers.plain import plain
from horolog.application.retention.ports import Archive, Archived, Farewell, Month, Months
from horolog.application.retention.scanning import Scan
from horolog.application.verify.hash_chain import rows_digest
from horolog.domain.errors import InvalidSetting, StoreUnavailable
from horolog.domain.log_events import OccurrencesPruned
from horolog.domain.origin import Origin

CHUNK: Final = 1_000
"""Moves, or kept occurrences, in one event of an account."""

DROP_TRIES: Final = 100
PAUSE_S: Final = 0.2

Told = Callable[["MonthOutcome"], None]


@dataclass(frozen=True, slots=True)
class MonthOutcome:
    """What became of a month: ``pruned``, or not and why (``hindrance``; a dry run has none)."""

    month: str
    occurrences: int
    events: int
    executions: int
    kept: int
    pruned: bool
    hindrance: str | None = None
    archive: str | None = None


@dataclass(slots=True)
class RetentionOutcome:
    """``before``: months whose whole range is before it were looked at."""

    before: datetime
    dry_run: bool
    months: list[MonthOutcome] = field(default_factory=list[MonthOutcome])

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


def prune(
    months: Months,
    *,
    older_than_days: float,
    now: datetime,
    drawn: Callable[[], UUID],
    actor: str,
    archive: Archive | None = None,
    dry_run: bool = False,
    told: Told | None = None,
) -> RetentionOutcome:
    """Prunes the months that are older as a whole, the oldest first; ``told`` hears of each.

    A dry run looks and changes nothing. ``drawn`` gives the correlation of each account. Raises
    ``InvalidSetting``, ``NotAllowed`` while another process prunes or rebuilds, and
    ``StoreUnavailable``, after which the months that ``told`` has heard of are gone.
    """
    if not 1 <= older_than_days <= 365_000:
        raise InvalidSetting(f"--older-than {older_than_days:g}: from 1 to 365000 days")
    before = now - timedelta(days=older_than_days)
    outcome = RetentionOutcome(before, dry_run)
    with months.alone():
        found = months.older_than(before)
        if not dry_run and any(month.hindrance is None for month in found):
            months.tidy()
        for month in found:
            if dry_run or month.hindrance is not None:
                done = _outcome(month)
            else:
                reason = f"older than {older_than_days:g} days"
                origin = Origin(actor, reason, correlation=drawn())
                done = _prune_month(months, month, archive, origin)
            outcome.months.append(done)
            if told is not None:
                told(done)
    return outcome


def _prune_month(
    months: Months, month: Month, archive: Archive | None, origin: Origin
) -> MonthOutcome:
    if not month.events and not month.executions:
        return _let_go(months, Farewell(month, [], [], month.last), None)
    scan = Scan(months, month)
    archived: Archived | None = None
    if archive is None:
        events = sum(1 for _ in scan.leaving())
    else:
        name = f"occurrences-{month.name}-{month.first}-{month.last}"
        archived = archive.write(name, scan.leaving())
        events = archived.events
    month = replace(month, events=events)
    account = _account(month, scan, archived, origin)
    if len(account) > 1:
        months.say(account[:-1])
    farewell = Farewell(month, account, scan.links, scan.until_position)
    return _let_go(months, farewell, None if archived is None else archived.file)


def _let_go(months: Months, farewell: Farewell, archive: str | None) -> MonthOutcome:
    month = farewell.month
    for _ in range(DROP_TRIES):
        if months.drop(farewell):
            return replace(_outcome(month), pruned=True, archive=archive)
        sleep(PAUSE_S)
    raise StoreUnavailable(
        f"{month.name} could not be pruned: some transaction holds the tables all the time"
        " (a long query on occurrence_events or executions?); it is still there, run it again"
    )


def _account(
    month: Month, scan: Scan, archived: Archived | None, origin: Origin
) -> list[OccurrencesPruned]:
    """What the log will say. Long lists go before the last event, a thousand at a time."""
    hasher = sha256()
    rows_digest(scan.links, hasher)
    moves = sorted(scan.moves.values(), key=lambda move: move.position)
    span = {"since": month.since, "until": month.until, **origin.fields()}
    more = [
        OccurrencesPruned(**span, moves=chunk, more=True)  # pyright: ignore[reportArgumentType]
        for chunk in _chunks(moves)
    ]
    last = OccurrencesPruned(
        **span,  # pyright: ignore[reportArgumentType]
        occurrences=month.occurrences,
        events=month.events,
        executions=month.executions,
        archive=None if archived is None else archived.file,
        archive_sha256=None if archived is None else archived.sha256,
        links_sha256=hasher.hexdigest(),
        kept=list(month.kept),
    )
    return [*more, last]


def _chunks(items: Sequence[Any]) -> list[list[Any]]:
    return [list(items[start : start + CHUNK]) for start in range(0, len(items), CHUNK)]


def _outcome(month: Month) -> MonthOutcome:
    return MonthOutcome(
        month.name,
        month.occurrences,
        month.events,
        month.executions,
        len(month.kept),
        pruned=False,
        hindrance=month.hindrance,
    )
