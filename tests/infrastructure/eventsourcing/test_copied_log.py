"""A log that is copied through the library has the read models that it has where it was decided.

On the one side Horolog's own builders decide and write the rows; on the other the recorder gets
nothing but the events, in pieces of any size, and has to come to the same.
"""

from collections.abc import Generator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from eventsourcing.persistence import StoredEvent

from horolog.application.decision import (
    Decision,
    decide_on_fires,
    decide_on_job,
    decide_on_occurrence,
)
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import occurrence_id
from horolog.domain.job import JobState
from horolog.domain.job_events import (
    BackfillRequested,
    Cancelled,
    FiresSkipped,
    JobEvent,
    Paused,
    PayloadChanged,
    Registered,
    Triggered,
)
from horolog.domain.occurrence import OccurrenceState, ordered
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    DeadLettered,
    Discarded,
    Failed,
    Lost,
    OccurrenceEvent,
    Recalled,
    Replayed,
    Skipped,
    Snoozed,
    Succeeded,
)
from horolog.domain.orders import ordered_by
from horolog.domain.schedule import Every
from horolog.infrastructure.eventsourcing.recorder import PostgresLogRecorder
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate
from horolog.infrastructure.postgres.states import PostgresStates
from horolog.projections.rows import occurrence_next_run

START = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TRIED = Attempted(attempt=1, lease=30.0)
GONE = Failed(attempt=1, kind="permanent", error="gone")
DEAD = DeadLettered(cause="hopeless", owner="billing", kind="permanent", error="gone")

# Without what only the clock of the one or the other database can say.
ROWS = (
    """SELECT 'next run', id, job_id, partition, look, state, kind, version, fire_time, attempt,
              failures, fires, CASE WHEN NOT look THEN due_at END
       FROM :schema.next_runs ORDER BY id""",
    """SELECT 'job', id, key, version, status, partition, name, queue, owner, labels,
              definition::text, held_fire, fires FROM :schema.jobs ORDER BY id""",
    """SELECT 'ended', id, job_id, partition, fire_time, kind, state, version, attempt, failures
       FROM :schema.executions ORDER BY id""",
    """SELECT 'dead', id, job_id, name, owner, cause, kind, error, attempt, fire_time
       FROM :schema.dead_letters ORDER BY id""",
)


class Life:
    """Jobs and occurrences, decided and appended as Horolog does it."""

    def __init__(self, database: Database) -> None:
        self._log = PostgresLog(database)
        self._states = PostgresStates(database)

    def change(self, job_id: UUID, *events: JobEvent) -> None:
        decision, after = decide_on_job(self._states.job(job_id), job_id, events)
        for event in events:
            for state in ordered_by(after, event, START):
                decision.next_runs.append(occurrence_next_run(state))
        self._append(decision)

    def fire(self, job_id: UUID, *skipped: FiresSkipped, count: int = 1) -> list[OccurrenceState]:
        """Claims the next ``count`` fire times after those that were skipped."""
        job = self._states.job(job_id)
        assert job is not None
        assert job.next_fire is not None
        first = job.fires + sum(event.count or 0 for event in skipped)
        claims = [self.claim(job, number) for number in range(first + 1, first + 1 + count)]
        decision, _, claimed = decide_on_fires(job, job.next_fire, claims, skipped)
        self._append(decision)
        return claimed

    def claim(self, job: JobState, fires: int) -> tuple[OccurrenceState, Claimed]:
        at = START + (fires - 1) * MINUTE
        before = ordered(occurrence_id(job.id, at), job.id, job.partition, at, "schedule")
        event = self.claim_again(before, job.version)
        update = {"fires": fires, "next_fire": at + MINUTE}
        return before, event.model_copy(update=update)

    def claim_again(self, before: OccurrenceState, job_version: int = 1) -> Claimed:
        return Claimed(
            job_id=before.job_id,
            job_version=job_version,
            fire_time=before.fire_time,
            attempt=before.attempt + 1,
            partition=before.partition,
            token=1,
            window=30.0,
            kind=before.kind,
            definition_version=before.definition_version,
        )

    def go_on(self, before: OccurrenceState, *events: OccurrenceEvent) -> OccurrenceState:
        decision, after = decide_on_occurrence(before, events, name="report")
        self._append(decision)
        return after

    def found(self, identity: UUID) -> OccurrenceState:
        state = self._states.occurrence(identity)
        assert state is not None
        return state

    def _append(self, decision: Decision) -> None:
        assert self._log.append([decision]).verdicts == ["accepted"]


def live(life: Life) -> None:
    """A life of three jobs in which everything happens that can happen."""
    a, b, c = UUID(int=11), UUID(int=12), UUID(int=13)
    for job_id in (a, b, c):
        definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
        life.change(job_id, Registered(definition=definition, partition=3, next_fire=START))

    (ordinary,) = life.fire(a)
    life.go_on(ordinary, TRIED, Succeeded(attempt=1, result={"sent": 3}))

    (flaky,) = life.fire(a)
    refused = Failed(attempt=1, kind="transport", error="no", retry_at=START + 9 * MINUTE)
    flaky = life.go_on(flaky, TRIED, refused)
    flaky = life.go_on(flaky, life.claim_again(flaky))
    until = START + 20 * MINUTE
    life.go_on(flaky, Attempted(attempt=2, lease=30.0), Snoozed(attempt=2, until=until))

    dead, replayed, discarded, lost, recalled, running = life.fire(b, count=6)
    for state in (dead, replayed, discarded):
        life.go_on(state, TRIED, GONE, DEAD)
    life.go_on(life.found(replayed.id), Replayed(at=START + 30 * MINUTE))
    life.go_on(life.found(discarded.id), Discarded(reason="no matter"))
    life.go_on(lost, TRIED, Lost(attempt=1, retry_at=START + 40 * MINUTE))
    life.go_on(recalled, Recalled(at=START + 41 * MINUTE))
    life.go_on(running, TRIED)

    dropped = FiresSkipped(
        first=START + 6 * MINUTE,
        last=START + 8 * MINUTE,
        count=3,
        cause="superseded",
        next_fire=START + 9 * MINUTE,
        fires=9,
    )
    life.fire(b, dropped)

    ats = [START + 50 * MINUTE, START + 51 * MINUTE]
    ids = [occurrence_id(c, at, "trigger", "x") for at in ats]
    for identity, at in zip(ids, ats, strict=True):
        life.change(c, Triggered(occurrence_id=identity, fire_time=at, request_id="x"))
    missed = [START - 2 * MINUTE, START - MINUTE]
    asked = BackfillRequested(
        start=missed[0],
        end=missed[-1],
        fires=missed,
        due=START + 60 * MINUTE,
        spacing_s=5.0,
        definition_version=1,
    )
    life.change(c, asked)
    order = life.found(ids[0])
    life.go_on(order, life.claim_again(order, 3))
    life.go_on(life.found(ids[1]), Skipped(cause="cancelled"))
    missed_one = life.found(occurrence_id(c, missed[0]))
    missed_one = life.go_on(missed_one, life.claim_again(missed_one, 4))
    life.go_on(missed_one, TRIED, Succeeded(attempt=1))

    life.change(a, PayloadChanged(payload={"n": 1}))
    life.change(a, Paused(reason="holiday"))
    life.change(c, Cancelled())


@pytest.fixture
def copy(database_url: str, namespace: str) -> Generator[Database]:
    copy = Database(database_url, f"{namespace}_copy")
    migrate(copy)
    yield copy
    copy.close()


def pieces(events: Sequence[StoredEvent], size: int) -> list[list[StoredEvent]]:
    """Pieces of ``size`` or a little more: a death is one decision of two events."""
    found: list[list[StoredEvent]] = [[]]
    for event in events:
        if len(found[-1]) >= size and event.topic != DEAD.topic:
            found.append([])
        found[-1].append(event)
    return found


def rows(database: Database) -> list[tuple[object, ...]]:
    return [row for text in ROWS for row in database.query(database.sql(text))]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_a_copy_has_the_same_read_models(database: Database, copy: Database, size: int) -> None:
    live(Life(database))
    notifications = PostgresLogRecorder(database).select_notifications(None, 1000)
    recorder = PostgresLogRecorder(copy)

    for piece in pieces(notifications, size):
        recorder.insert_events(piece)

    copied = recorder.select_notifications(None, 1000)
    assert [(n.originator_id, n.originator_version, n.state) for n in copied] == [
        (n.originator_id, n.originator_version, n.state) for n in notifications
    ]
    assert rows(copy) == rows(database)
