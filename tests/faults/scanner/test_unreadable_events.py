"""Events that nobody can read stop nobody but those who read that very stream."""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from horolog import Scheduler
from horolog.domain.errors import ProjectionStopped
from horolog.interface.projections import Projections

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage

PLANTED = {
    "an unknown topic": ("occurrence_events", 1, "occurrence.mystery.1", b"{}"),
    "truncated JSON": ("occurrence_events", 1, "occurrence.claimed.1", b'{"attempt": 1, "job'),
    "of a job that is there": ("job_events", 2, "job.policies_changed.7", b"{}"),
}


@pytest.mark.parametrize("kind", PLANTED)
async def test_jobs_registered_after_an_unreadable_event_fire(stage: "Stage", kind: str) -> None:
    table, version, topic, state = PLANTED[kind]
    before = stage.register(1, in_s=-1)
    stream: UUID = next(iter(before)) if version == 2 else uuid4()
    ((position,),) = stage.ask(
        f"INSERT INTO :schema.{table} (position, recorded_at, stream, version, topic, state)"
        " VALUES (nextval(:positions), clock_timestamp(), %s, %s, %s, %s) RETURNING position",
        (stream, version, topic, state),
    )
    async with stage.scanner():
        after = stage.register(20, in_s=-1)
        await stage.until(lambda: after <= stage.claimed_jobs())
    with (
        Projections(stage.database_url, namespace=stage.namespace) as projections,
        Scheduler(stage.database_url, namespace=stage.namespace) as scheduler,
    ):
        with pytest.raises(ProjectionStopped, match=f"position {position} .{stream}:{version}"):
            await asyncio.to_thread(projections.rebuild)
        status = projections.status()
        assert status.unfinished is not None
        assert status.unfinished.position < position <= status.position
        assert status.lag == status.position - status.unfinished.position > 0
        jobs = {job.id for job in scheduler.jobs(limit=100)}
        assert after <= jobs
        outcome = await asyncio.to_thread(projections.rebuild, skip=position, reason="by hand")
        assert [d for d in outcome.differences if UUID(d.id) not in before] == []
