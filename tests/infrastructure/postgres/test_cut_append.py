"""An append whose answer is cut off after its commit is answered as if nothing had happened."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from horolog.application.decision import (
    Decision,
    decide_on_fires,
    decide_on_job,
    decide_on_occurrence,
    decide_on_partition,
)
from horolog.application.log import Appended, Fences
from horolog.domain.definition import JobDefinition
from horolog.domain.ids import occurrence_id, partition_stream
from horolog.domain.job import JobState
from horolog.domain.job_events import Paused, Registered
from horolog.domain.occurrence import OccurrenceState, ordered
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    DeadLettered,
    Failed,
    OccurrenceEvent,
    Replayed,
)
from horolog.domain.partition import Elected, PartitionState
from horolog.domain.schedule import Every
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog

if TYPE_CHECKING:
    from tests.infrastructure.conftest import CuttingProxy

START = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PARTITION = 3


class CutOff:
    """Appends through the proxy, which cuts off the answer to each; ``log`` sees what is there."""

    def __init__(self, database: Database, behind: Database, proxy: CuttingProxy) -> None:
        self.log = PostgresLog(database)
        self.namespace = database.namespace
        self._cut = PostgresLog(behind)
        self._proxy = proxy
        self._cut.append([])

    def append(self, *decisions: Decision, fences: Fences | None = None) -> Appended:
        self._proxy.cut_an_answer()
        cuts = self._proxy.cuts
        appended = self._cut.append(decisions, fences)
        assert self._proxy.cuts == cuts + 1
        return appended

    def registered(self, number: int) -> JobState:
        definition = JobDefinition(name="report", schedule=Every(60, anchor=START).to_json())
        event = Registered(definition=definition, partition=PARTITION, next_fire=START)
        decision, job = decide_on_job(None, UUID(int=number), [event])
        assert self.append(decision).verdicts == ["accepted"]
        return job

    def claimed(self, job: JobState, fences: Fences | None = None) -> OccurrenceState:
        before = ordered(occurrence_id(job.id, START), job.id, PARTITION, START, "schedule")
        event = Claimed(
            job_id=job.id,
            job_version=job.version,
            fire_time=START,
            attempt=1,
            partition=PARTITION,
            token=1,
            window=30.0,
            fires=1,
            next_fire=START + MINUTE,
        )
        decision, _, (claimed,) = decide_on_fires(job, START, [(before, event)], [])
        assert self.append(decision, fences=fences).verdicts == ["accepted"]
        return claimed

    def went_on(self, before: OccurrenceState, *events: OccurrenceEvent) -> OccurrenceState:
        decision, after = decide_on_occurrence(before, events)
        assert self.append(decision).verdicts == ["accepted"]
        return after

    def topics(self) -> list[str]:
        return [recorded.event.topic for recorded in self.log.log()]


@pytest.fixture
def cut_off(database: Database, proxy: CuttingProxy) -> Generator[CutOff]:
    behind = Database(proxy.url, database.namespace, size=1)
    yield CutOff(database, behind, proxy)
    behind.close()


def test_every_step_of_a_life_is_recognised_as_ones_own(cut_off: CutOff) -> None:
    stream = partition_stream(cut_off.namespace, PARTITION)
    elected = Elected(partition=PARTITION, instance="a", lease=30.0)
    decision, _ = decide_on_partition(PartitionState(stream, PARTITION), [elected], 30.0)
    leading = Fences("a", {PARTITION: 1})
    assert cut_off.append(decision, fences=Fences("a", {})).verdicts == ["accepted"]

    job = cut_off.registered(1)
    claimed = cut_off.claimed(job, leading)
    gone = Failed(attempt=1, kind="permanent", error="gone")
    died = DeadLettered(cause="hopeless", error="gone")
    running = cut_off.went_on(claimed, Attempted(attempt=1, lease=30.0))
    dead = cut_off.went_on(running, gone, died)
    cut_off.went_on(dead, Replayed(at=START))

    assert cut_off.topics() == [
        "partition.elected.1",
        "job.registered.1",
        "occurrence.claimed.1",
        "occurrence.attempted.1",
        "occurrence.failed.1",
        "occurrence.dead_lettered.1",
        "occurrence.replayed.1",
    ]


def test_what_was_refused_before_the_cut_stays_refused(cut_off: CutOff) -> None:
    job = cut_off.registered(1)
    outdated, _ = decide_on_job(job, job.id, [Paused(actor="me")])
    first, _ = decide_on_job(job, job.id, [Paused(actor="another")])
    assert cut_off.log.append([first]).verdicts == ["accepted"]
    other, _ = decide_on_job(
        None,
        UUID(int=2),
        [Registered(definition=job.definition, partition=PARTITION, next_fire=START)],
    )

    assert cut_off.append(outdated, other).verdicts == ["conflict", "accepted"]
    assert [e.event.actor for e in cut_off.log.stream(job.id, after=1)] == ["another"]


def test_the_attempt_of_one_copy_of_a_message_is_not_recognised_as_that_of_another(
    cut_off: CutOff,
) -> None:
    claimed = cut_off.claimed(cut_off.registered(1))
    first, second = (
        decide_on_occurrence(
            claimed, [Attempted(attempt=1, lease=30.0, serial=serial, actor="worker")]
        )[0]
        for serial in (1, 2)
    )
    assert cut_off.log.append([first]).verdicts == ["accepted"]
    assert cut_off.append(second).verdicts == ["conflict"]
