"""The read models from the log, wired to a namespace: status, verify, rebuild, rollback.

    from horolog.interface.projections import Projections

    with Projections() as projections:
        outcome = projections.verify("next_runs")
        if not outcome.ok:
            projections.rebuild("next_runs", reason="a stray UPDATE")

The same as ``horolog projection …`` on the command line.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from horolog.application.answers.plain import plain
from horolog.application.rebuild import (
    Outcome,
    Run,
    rebuild,
    roll_back,
    skip_event,
    verify_projections,
)
from horolog.application.rebuild.filling import WINDOW
from horolog.application.rebuild.progress import Watch
from horolog.application.rebuild.rebuilding import Found
from horolog.domain.errors import ProjectionStopped
from horolog.domain.log_events import EventSkipped
from horolog.domain.origin import Origin
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.migrate import check_newest, check_schema
from horolog.infrastructure.postgres.rebuild.rebuilds import PostgresRebuilds
from horolog.infrastructure.postgres.rebuild.rows import row_counts
from horolog.interface.settings import Settings
from horolog.projections.changes import PROJECTIONS, VERSION

MOST_RUNS = 20


@dataclass(frozen=True, slots=True)
class ProjectionStatus:
    """A read model. It is written with the events themselves, so it is never behind them; ``rows``
    is the planner's estimate. ``rebuilt_at`` is when it was last put to use anew."""

    name: str
    rows: int
    position: int
    rebuilt_at: datetime | None


@dataclass(frozen=True, slots=True)
class ProjectionsStatus:
    """``unfinished`` is a rebuild or a check that goes on where it was interrupted, or stopped at
    an event; ``lag`` is how many positions it is behind the log."""

    position: int
    fold_version: int
    projections: list[ProjectionStatus]
    can_roll_back: bool
    unfinished: Run | None
    lag: int | None
    runs: list[Run]
    skipped: list[EventSkipped]

    def to_dict(self) -> dict[str, Any]:
        return plain(self)


class Projections:
    """Closes its connections at the end of the ``with`` block.

    ``window`` is how many events are folded at a time: more is faster and takes more memory.
    Every method raises ``StoreUnavailable``; ``NotAllowed`` while another process rebuilds,
    verifies or prunes the namespace.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        settings: Settings | None = None,
        window: int = WINDOW,
    ) -> None:
        self._window = window
        settings = settings or Settings.read(database_url, namespace=namespace, actor=actor)
        self._actor = settings.actor
        self._namespace = settings.namespace
        self._database = Database(settings.database_url(), settings.namespace)
        self._rebuilds = PostgresRebuilds(self._database)
        try:
            check_schema(self._database)
            check_newest(self._database)
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def status(self) -> ProjectionsStatus:
        """What there is, and how the last rebuilds stand."""
        end = log_position(self._database)
        runs = self._rebuilds.runs(MOST_RUNS)
        rows = row_counts(self._database)
        put_to_use = [run for run in runs if run.state in ("exchanged", "rolled_back")]
        unfinished = next((r for r in runs if r.state in ("folding", "stopped", "kept")), None)
        return ProjectionsStatus(
            position=end,
            fold_version=VERSION,
            projections=[
                ProjectionStatus(
                    name,
                    rows[name],
                    end,
                    next((run.moved_at for run in put_to_use if name in run.projections), None),
                )
                for name in PROJECTIONS
            ],
            can_roll_back=self._rebuilds.has_kept(),
            unfinished=unfinished,
            lag=None if unfinished is None else max(0, end - unfinished.position),
            runs=runs,
            skipped=self._rebuilds.skipped(),
        )

    def verify(
        self, *names: str, watch: Watch | None = None, found: Found | None = None
    ) -> Outcome:
        """Compares the named projections (all, where none is named) with the log; changes nothing.

        ``found`` is told every difference, the outcome holds the first thousand. Raises
        ``ProjectionStopped``, which names the event that cannot be applied.
        """
        return verify_projections(
            self._rebuilds, names, actor=self._actor, watch=watch, found=found, window=self._window
        )

    def rebuild(
        self,
        *names: str,
        skip: int | None = None,
        reason: str | None = None,
        watch: Watch | None = None,
        found: Found | None = None,
    ) -> Outcome:
        """Builds the named projections anew while the system runs, and puts them to use.

        ``skip`` is the position of an event that is to be passed over, which is recorded in the log
        with ``reason``. Raises ``ProjectionStopped`` at any other event that cannot be applied.
        """
        if skip is not None:
            self.skip(skip, reason=reason)
        return rebuild(
            self._rebuilds,
            names,
            actor=self._actor,
            reason=reason,
            watch=watch,
            found=found,
            window=self._window,
        )

    def skip(self, position: int, *, reason: str | None = None) -> EventSkipped:
        """Lets every rebuild from now on pass over the event at ``position``."""
        unfinished = self.status().unfinished
        stopped = unfinished is not None and unfinished.state == "stopped"
        error = unfinished.error if stopped and unfinished is not None else None
        return skip_event(
            self._rebuilds,
            PostgresLog(self._database, patience_s=5.0),
            self._namespace,
            position,
            error=error or "",
            origin=Origin(self._actor, reason),
        )

    def roll_back(self, *, watch: Watch | None = None) -> Outcome:
        """Puts the tables to use again that the last rebuild took out of it, brought up to date."""
        return roll_back(self._rebuilds, watch=watch)


__all__ = ["ProjectionStopped", "Projections", "ProjectionsStatus"]
