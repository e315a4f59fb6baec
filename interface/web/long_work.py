"""Rebuilds and checks of read models, which take longer than anybody waits for an answer.

One at a time in a thread of its own; whoever asks is told that it has begun, and asks how far it
is. A rebuild that is cut off by the end of the process goes on from where it was when it is next
asked for: that is the rebuild's own promise.
"""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from horolog.application.answers.plain import plain
from horolog.application.rebuild import Outcome
from horolog.application.rebuild.progress import Progress
from horolog.domain.errors import HorologError, NotAllowed
from horolog.interface.projections import Projections, ProjectionsStatus
from horolog.interface.settings import Settings

Purpose = Literal["verify", "rebuild", "rollback"]


@dataclass(frozen=True, slots=True)
class Work:
    """``state`` is "running", "done" or "failed"; ``outcome`` what a done one came to."""

    purpose: Purpose
    projections: tuple[str, ...]
    actor: str
    reason: str | None
    started_at: datetime
    state: Literal["running", "done", "failed"] = "running"
    progress: Progress | None = None
    outcome: Outcome | None = None
    error: str | None = None

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        if self.state != "running":
            return 1.0
        if self.progress is None or not self.progress.end:
            return 0.0
        return min(1.0, self.progress.position / self.progress.end)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self) | {"share": self.share}


class LongWork:
    """The work of one server process; the database sees to it that no other process works too."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._last: Work | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    @property
    def last(self) -> Work | None:
        """What runs, or ran last, in this process."""
        with self._lock:
            return self._last

    def status(self) -> ProjectionsStatus:
        """The read models against the log, and the last rebuilds of any process."""
        with Projections(settings=self._settings) as projections:
            return projections.status()

    def start(
        self, purpose: Purpose, names: tuple[str, ...], *, actor: str, reason: str | None
    ) -> Work:
        """Begins; raises ``NotAllowed`` while other work runs here, ``InvalidSetting`` for a
        projection that there is not."""
        from horolog.application.rebuild.rebuilding import projections_of

        projections_of(names)
        with self._lock:
            if self._last is not None and self._last.state == "running":
                raise NotAllowed(f"a {self._last.purpose} is running: wait until it has ended")
            work = Work(purpose, names, actor, reason, datetime.now(UTC))
            self._last = work
            self._thread = threading.Thread(
                target=self._run, args=(work,), name=f"horolog-{purpose}", daemon=True
            )
            self._thread.start()
            return work

    def close(self) -> None:
        """Has the work end at its next step, and waits for that."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=5.0)

    def _run(self, work: Work) -> None:
        from dataclasses import replace

        def watch(progress: Progress) -> None:
            if self._closing.is_set():
                raise _Closing
            with self._lock:
                self._last = replace(work, progress=progress)

        try:
            ended = replace(work, state="done", outcome=self._outcome(work, watch))
        except _Closing:
            ended = replace(work, state="failed", error="the web server was stopped; ask again")
        except HorologError as error:
            ended = replace(work, state="failed", error=str(error))
        except Exception as error:  # noqa: BLE001 - a thread's top: the page says what ended it
            ended = replace(work, state="failed", error=f"{type(error).__name__}: {error}")
        with self._lock:
            self._last = ended

    def _outcome(self, work: Work, watch: Any) -> Outcome:
        from dataclasses import replace

        settings = replace(self._settings, actor=work.actor)
        with Projections(settings=settings) as projections:
            match work.purpose:
                case "verify":
                    return projections.verify(*work.projections, watch=watch)
                case "rebuild":
                    return projections.rebuild(*work.projections, reason=work.reason, watch=watch)
                case "rollback":
                    return projections.roll_back(watch=watch)


class _Closing(Exception):
    """The server ends."""
