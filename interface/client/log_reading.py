"""The log itself: the events of one stream, all events, and those that come."""

import os
from collections.abc import Generator, Sequence
from pathlib import Path

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.queries import asking
from horolog.application.queries.archives import archived_history
from horolog.application.queries.following import Follower, follow
from horolog.application.queries.limit import checked_limit
from horolog.infrastructure.archive.reading import ArchiveFolder
from horolog.interface.client.connected import Connected
from horolog.interface.filters import (
    chosen_place,
)
from horolog.interface.identifiers import Identifier, as_uuid


class LogReading(Connected):
    """Reads the log and follows it."""

    def history(
        self,
        id: Identifier | int,  # noqa: A002 - the name that the contract gives it
        *,
        after: int = 0,
        limit: int = 1000,
        archive: str | os.PathLike[str] | None = None,
    ) -> list[LoggedEvent]:
        """The events of a job (id or key), an occurrence (id) or a partition (its number).

        Oldest first; ``after`` is the version of the last event of the page before. An id that has
        no event has an empty history. ``archive`` is a folder of retention: an occurrence that has
        left the log is looked for there, and its events say so. Raises ``UnknownJob`` for a key
        that no job has.
        """
        client = self._connected()
        if isinstance(id, int):
            client = client.of_one_log("the history of a partition")
        identity = None if isinstance(id, int) else as_uuid(id)
        stream = asking.stream_of(client.context, id, identity)
        place = chosen_place(after)
        found = asking.history(client.log, stream, after=place, limit=limit)
        if found or archive is None or client.log.stream(stream, limit=1):
            return self.read_out(found)
        life = ArchiveFolder(Path(archive)).life(stream)
        past = [] if life is None else archived_history(life, after=place, limit=limit)
        return self.read_out(past)

    def log(
        self,
        *,
        after: int = 0,
        topics: Sequence[str] | str | None = None,
        limit: int = 1000,
    ) -> list[LoggedEvent]:
        """A page of all events with a position above ``after``, in their one order.

        ``topics`` chooses: "occurrence.failed.1", or a group such as "job". ``limit`` is from 1 to
        10,000.
        """
        wanted = asking.checked_topics(topics)
        log = self._connected().of_one_log("the log").log
        page = log.log(after=chosen_place(after), topics=wanted, limit=checked_limit(limit))
        return self.read_out([LoggedEvent.of(recorded) for recorded in page])

    def position(self) -> int:
        """The position that the log has reached: ``follow(after=position())`` is what comes now."""
        return self._connected().of_one_log("the position of the log").position()

    def follow(
        self, after: int = 0, *, topics: Sequence[str] | str | None = None
    ) -> Generator[LoggedEvent]:
        """All events with a position above ``after``, and then each as it comes, for ever.

        No event is passed over, also where the connection breaks and is made anew. Close the
        generator, or leave the loop, to end it.
        """
        for recorded in follow(self.follower(after, topics=topics)):
            yield self.read_out(LoggedEvent.of(recorded))

    def follower(self, after: int = 0, *, topics: Sequence[str] | str | None = None) -> Follower:
        """What ``follow`` reads from, for callers that have more to do while they wait."""
        wanted = asking.checked_topics(topics)
        client = self._connected().of_one_log("the log")
        return Follower(client.log, client.news(), after=chosen_place(after), topics=wanted)
