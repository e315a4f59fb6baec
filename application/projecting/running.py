"""The loop of a projection: take the lock, follow, apply in batches, be patient, stop with a name.

A batch is one transaction. Where an event of it cannot be applied, the batch is taken back and its
events are applied one by one, so that what is before the event is kept; that one is tried a few
times more, for it may have met a lock or a deadlock, and then the projection stops before it.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.log import Recorded
from horolog.application.projecting.place import KeepsPlace, Overtaken
from horolog.application.projecting.projection import Projection
from horolog.application.queries.following import Follower
from horolog.domain.errors import (
    ProjectionStopped,
    SchemaMissing,
    SchemaTooNew,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

STAND_BY_S: Final = 1.0
"""How often one that stands by asks for the lock."""

KEEP_UP_S: Final = 1.0
"""How often the place follows a log of which the projection wants nothing."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How an event that cannot be applied is tried again: ``attempts`` in all, the pauses between
    them doubling from ``base_s`` up to ``cap_s`` seconds."""

    attempts: int = 5
    base_s: float = 0.2
    cap_s: float = 10.0

    def pause_s(self, failures: int) -> float:
        return min(self.cap_s, self.base_s * 2 ** min(failures - 1, 30))


@dataclass(frozen=True, slots=True)
class Bounds:
    """``batch``: the most events of one transaction; more are faster, and hold the rows that they
    write for longer. ``until``: a position after which the run ends. ``skip``: positions of events
    that are passed over."""

    batch: int = 500
    until: int | None = None
    skip: Collection[int] = ()


class Refused(Exception):
    """The user's code, or a constraint of their tables, did not take an event."""


class Told(Exception):
    """To stop, while an event waits to be tried again: nothing behind it may be applied."""


class Running:
    """Runs one projection until it is told to stop. For one thread.

    ``follow`` makes a follower after a position; ``stopping`` says whether to stop; ``pause`` waits
    so many seconds, less where it is told to stop.
    """

    def __init__(
        self,
        projection: Projection,
        place: KeepsPlace,
        follow: Callable[[int], Follower],
        *,
        begin: int = 0,
        bounds: Bounds | None = None,
        patience: Patience | None = None,
        stopping: Callable[[], bool] = lambda: False,
        pause: Callable[[float], Any] = time.sleep,
    ) -> None:
        self.applied = 0
        self._projection = projection
        self._place = place
        self._follow = follow
        self._begin = begin
        self._bounds = bounds or Bounds()
        self._patience = patience or Patience()
        self._stopping = stopping
        self._pause = pause
        self._position = 0
        self._moved_at = 0.0

    def run(self) -> int:
        """How many events were applied in all.

        Raises ``ProjectionStopped`` and ``UnreadableEvent``, which name the event, and
        ``SchemaMissing``. A store that is away is waited for.
        """
        failures = 0
        while not self._stopping():
            try:
                if not self._place.take():
                    self._pause(STAND_BY_S)
                    continue
                failures = 0
                with suppress(Told):
                    self._run_as_the_one()
                return self.applied
            except (SchemaMissing, SchemaTooNew):
                raise
            except (StoreUnavailable, Overtaken) as error:
                failures += 1
                log.warning("projection %s begins again: %s", self._projection.name, error)
                self._pause(self._patience.pause_s(failures))
            finally:
                self._place.release()
        return self.applied

    def _run_as_the_one(self) -> None:
        with self._place.standing() as view:
            self._projection.set_up(view)
        self._position = self._place.position(self._begin)
        with closing(self._follow(self._position)) as follower:
            while not self._stopping() and not self._is_through():
                events = follower.page()
                until = self._bounds.until
                wanted = [e for e in events if until is None or e.position <= until]
                for start in range(0, len(wanted), self._bounds.batch):
                    if self._stopping():
                        return
                    self._apply(wanted[start : start + self._bounds.batch])
                self._keep_up(follower.position)

    def _is_through(self) -> bool:
        return self._bounds.until is not None and self._position >= self._bounds.until

    def _apply(self, batch: Sequence[Recorded]) -> None:
        try:
            self._apply_together(batch)
        except Refused as refusal:
            if len(batch) > 1:
                for event in batch:
                    self._apply([event])
            else:
                self._try_again(batch[0], refusal)

    def _apply_together(self, batch: Sequence[Recorded]) -> None:
        last = batch[-1].position
        wanted = [event for event in batch if event.position not in self._bounds.skip]
        try:
            with self._place.moved(last) as view:
                for event in wanted:
                    self._projection.apply(LoggedEvent.of(event), view)
        except (StoreUnavailable, Overtaken):
            raise
        except Exception as error:
            # The user's code runs in there, and their tables' constraints speak at the commit.
            raise Refused(f"{type(error).__name__}: {error}") from error
        for event in batch:
            if event.position in self._bounds.skip:
                log.warning(
                    "projection %s passed over position %d", self._projection.name, event.position
                )
        self.applied += len(wanted)
        self._has_moved(last)

    def _try_again(self, event: Recorded, refusal: Refused) -> None:
        for failures in range(1, self._patience.attempts):
            log.warning(
                "projection %s: position %d, try %d: %s",
                self._projection.name,
                event.position,
                failures,
                refusal,
            )
            self._pause(self._patience.pause_s(failures))
            if self._stopping():
                raise Told
            try:
                self._apply_together([event])
            except Refused as error:
                refusal = error
            else:
                return
        raise ProjectionStopped(
            f"projection {self._projection.name} stops before the event at position"
            f" {event.position} ({event.stream}:{event.version}, {event.event.topic}), which it"
            f" cannot apply: {refusal}; mend it and run it again, or pass over the event",
            position=event.position,
        ) from refusal.__cause__

    def _keep_up(self, position: int) -> None:
        """Moves the place behind events that nobody wants, so that its lag is true; now and then,
        and at the end."""
        until = self._bounds.until
        target = position if until is None else min(position, until)
        if target <= self._position:
            return
        if target == until or time.monotonic() - self._moved_at >= KEEP_UP_S:
            with self._place.moved(target):
                pass
            self._has_moved(target)

    def _has_moved(self, position: int) -> None:
        self._position = position
        self._moved_at = time.monotonic()
