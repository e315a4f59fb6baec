"""A log that lacks what was pruned is judged by what it says of that."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from horolog.application.verify import verify
from horolog.domain.definition import JobDefinition
from horolog.domain.event import Event
from horolog.domain.ids import drawn_job_id, log_stream
from horolog.domain.job import decide_registration
from horolog.domain.job_events import FiresSkipped
from horolog.domain.log_events import OccurrencesPruned, ScheduleMoved
from horolog.domain.origin import Origin
from horolog.domain.schedule import Every
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.log_scan import SimulatedLogScan

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BY = Origin("leader")


def test_what_was_dropped_on_the_way_to_a_pruned_claim_had_its_turn_before_it() -> None:
    """After an outage one append claims the latest fire time, and then says what was dropped."""
    log = SimulatedLog(lambda: START)
    job_id = drawn_job_id(START, b"x" * 16)
    definition = JobDefinition(name="work", schedule=Every(60, anchor=START).to_json())
    [registered] = decide_registration(definition, partition=0, key=None, now=START, origin=BY)
    first, latest = START + MINUTE, START + 10 * MINUTE

    def record(stream: UUID, version: int, event: Event, at: datetime) -> None:
        log.tables.record(at, stream, version, event.topic, event.to_json())

    record(job_id, 1, registered, START)
    log.tables.last_position += 1  # the claim, which has left
    claimed = log.tables.last_position
    dropped = FiresSkipped(
        first=first,
        last=latest - MINUTE,
        count=9,
        cause="superseded",
        next_fire=latest,
        fires=9,
        **BY.fields(),
    )
    record(job_id, 2, dropped, latest)
    move = ScheduleMoved(
        position=claimed,
        append_position=claimed + 1,
        recorded_at=latest,
        job_id=job_id,
        fires=10,
        next_fire=latest + MINUTE,
    )
    pruned = OccurrencesPruned(
        since=START, until=START + timedelta(hours=1), moves=[move], **BY.fields()
    )
    record(log_stream("simulated"), 1, pruned, START + timedelta(days=60))
    violations = verify(SimulatedLogScan(log)).violations
    assert [str(v) for v in violations if v.invariant == 5] == []
