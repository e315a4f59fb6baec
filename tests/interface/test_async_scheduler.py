"""The async face: the same methods, the loop stays free, and following ends when it is told to."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from horolog import AsyncScheduler, Every, InvalidPolicy, JobSpec, Scheduler, UnknownJob

if TYPE_CHECKING:
    from horolog.infrastructure.postgres.database import Database


async def test_every_public_method_of_the_scheduler_has_its_coroutine() -> None:
    sync_only = {"close", "follower", "read_out"}
    for name, method in inspect.getmembers(Scheduler, inspect.isfunction):
        if name.startswith("_") or name in sync_only:
            continue
        lifted = getattr(AsyncScheduler, name)
        assert inspect.iscoroutinefunction(lifted) or inspect.isasyncgenfunction(lifted), name
        ours = [p for p in inspect.signature(lifted).parameters if p != "self"]
        theirs = [p for p in inspect.signature(method).parameters if p != "self"]
        assert ours == theirs, name


async def test_commands_and_queries_answer_as_the_sync_ones_do(database: Database) -> None:
    async with AsyncScheduler(database.url, namespace=database.namespace, actor="bob") as client:
        job = await client.register("a", schedule=Every(60), key="k")
        assert await client.job("k") == job
        assert (await client.pause(job.id, reason="holiday")).status == "paused"
        occurrence = await client.trigger(job.id, request_id="r")
        assert (await client.occurrence(occurrence.id)).state == "scheduled"
        assert [e.actor for e in await client.history(job.id)] == ["bob"] * 3
        async with await client.acting_as("ann") as ann:
            await ann.resume(job.id)
        assert (await client.changes(job.id))[-1].actor == "ann", "and these connections are open"
        await client.pause(job.id)
        with pytest.raises(UnknownJob):
            await client.job("nothing")
    assert client.scheduler.job("k").status == "paused"
    client.scheduler.close()


async def test_many_commands_go_on_at_once_and_the_loop_stays_free(database: Database) -> None:
    async with AsyncScheduler(database.url, namespace=database.namespace) as client:
        jobs = await asyncio.gather(
            *(client.register("a", schedule=Every(60), key="same") for _ in range(20))
        )
        assert len({job.id for job in jobs}) == 1


async def test_many_jobs_are_registered_from_either_kind_of_iterator(database: Database) -> None:
    def specs() -> Iterator[JobSpec]:
        yield from (JobSpec(f"job-{n}", schedule=Every(60)) for n in range(25))

    async def later() -> AsyncIterator[JobSpec]:
        for spec in specs():
            await asyncio.sleep(0)
            yield spec

    async with AsyncScheduler(database.url, namespace=database.namespace) as client:
        for source in (specs(), later()):
            names = [job.name async for job in client.register_many(source, batch=10)]
            assert names == [f"job-{n}" for n in range(25)]
        bad = [JobSpec("a", schedule=Every(60)), JobSpec("a", schedule=Every(60), priority=101)]
        with pytest.raises(InvalidPolicy, match="spec 1"):
            _ = [job async for job in client.register_many(bad)]
        assert len(await client.jobs(limit=100)) == 50


async def test_following_yields_events_as_they_come(database: Database) -> None:
    async with AsyncScheduler(database.url, namespace=database.namespace) as client:
        job = await client.register("a", schedule=Every(60))
        events = client.follow()
        assert (await anext(events)).stream == job.id
        waiting = asyncio.ensure_future(anext(events))
        await client.pause(job.id)
        assert (await asyncio.wait_for(waiting, 10)).topic == "job.paused.1"
        await events.aclose()


async def test_a_follower_that_is_cancelled_ends(database: Database) -> None:
    async with AsyncScheduler(database.url, namespace=database.namespace) as client:
        began = asyncio.Event()

        async def follow() -> None:
            async for _ in client.follow():
                began.set()

        await client.register("a", schedule=Every(60))
        task = asyncio.create_task(follow())
        await asyncio.wait_for(began.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
