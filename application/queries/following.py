"""Following the log: every event from a position on, and then each as it comes.

Positions become visible in their order, so a follower that remembers the last one has missed
nothing. A notification only says that it is time to look; one that is lost costs a poll interval. A
connection that breaks is made anew, and the following goes on after the last event that was seen.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing

from horolog.application.log import ReadsLog, Recorded
from horolog.application.queries.ports import WaitsForEvents
from horolog.domain.errors import SchemaMissing, SchemaTooNew, StoreUnavailable

POLL_S = 1.0
PAGE = 1_000
LONGEST_PAUSE_S = 5.0


class Follower:
    """Pages of the log after a position; for one thread at a time.

    ``topics`` chooses (all, where empty). ``poll_s``: how late an event may be seen whose
    notification was lost. Shorter asks the database more often while nothing happens.
    """

    def __init__(
        self,
        log: ReadsLog,
        news: WaitsForEvents,
        *,
        after: int = 0,
        topics: Sequence[str] = (),
        poll_s: float = POLL_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.position = after
        self._log = log
        self._news = news
        self._topics = frozenset(topics)
        self._poll_s = poll_s
        self._pause = pause
        self._failures = 0
        self._reached_once = False

    def page(self) -> list[Recorded]:
        """The next events; empty where none came within the poll interval, so that one can stop.

        Raises ``StoreUnavailable`` only if the log could not be read even once, ``SchemaMissing``,
        and ``UnreadableEvent`` for an event that this release cannot read.
        """
        try:
            # The wait begins before the look: what is appended in between is told.
            events = self._look()
            if not events:
                self._news.wait(self._poll_s)
                events = self._look()
        except (SchemaMissing, SchemaTooNew):
            raise
        except StoreUnavailable:
            if not self._reached_once:
                raise
            self._failures += 1
            self._pause(min(LONGEST_PAUSE_S, 0.1 * 2 ** min(self._failures, 10)))
            return []
        self._failures = 0
        return events

    def close(self) -> None:
        self._news.close()

    def _look(self) -> list[Recorded]:
        # All topics are read, and chosen from here: a follower of a rare one would otherwise look
        # at the same long stretch again and again.
        while True:
            events = self._log.log(after=self.position, limit=PAGE)
            self._reached_once = True
            if not events:
                return []
            self.position = events[-1].position
            wanted = [e for e in events if not self._topics or e.event.topic in self._topics]
            if wanted:
                return wanted


def follow(follower: Follower) -> Generator[Recorded]:
    """Events one by one, for ever; closing the generator ends the connection."""
    with closing(follower):
        while True:
            yield from follower.page()
