"""Parts of one stream of the log in memory."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from horolog.application.log import Recorded
from horolog.domain.job_events import BackfillRequested, Triggered
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedStreams:
    """As :class:`horolog.application.queries.audit_ports.ReadsStreams` promises."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log

    def of_topics(
        self, stream: UUID, topics: Sequence[str], *, after: int = 0, limit: int = 1000
    ) -> list[Recorded]:
        events = self._log.stream(stream, after=after, limit=1_000_000)
        return [one for one in events if one.event.topic in topics][:limit]

    def order_of(self, occurrence_id: UUID) -> Recorded | None:
        for stored in self._log.tables.events:
            if stored.topic == Triggered.topic:
                (recorded,) = self._log.stream(stored.stream, after=stored.version - 1, limit=1)
                assert isinstance(recorded.event, Triggered)
                if recorded.event.occurrence_id == occurrence_id:
                    return recorded
        return None

    def backfills_over(self, instant: datetime, *, after: int, limit: int) -> list[Recorded]:
        found: list[Recorded] = []
        for one in self._log.log(
            after=after, topics=[BackfillRequested.topic], limit=len(self._log.tables.events)
        ):
            event = one.event
            assert isinstance(event, BackfillRequested)
            if event.start < instant + timedelta(milliseconds=1) and event.end >= instant:
                found.append(one)
        return found[:limit]
