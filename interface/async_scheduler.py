"""The scheduler for asyncio: the same methods as coroutines, each the sync one in a thread.

There is one implementation. A command waits for Postgres in a thread of this scheduler's own, so
the loop stays free and the program's default threads are not used up.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from functools import wraps
from itertools import islice
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, Unpack, cast, overload

from horolog.application.answers.job import Job
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.planned_run import PlannedRun
from horolog.application.commands.backfill_request import BackfillOptions
from horolog.application.commands.job_spec import JobSpec
from horolog.interface.identifiers import Identifier
from horolog.interface.scheduler import AsyncTransaction, Scheduler
from horolog.interface.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

THREADS = 4
"""As many as the scheduler has connections: more would only wait for one."""


def _lifted(
    method: Callable[Concatenate[Scheduler, P], R],
) -> Callable[Concatenate["AsyncScheduler", P], Coroutine[Any, Any, R]]:
    """The method as a coroutine of the async scheduler, with the same arguments and answer."""

    @wraps(method)
    async def call(self: "AsyncScheduler", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.run(lambda: method(self.scheduler, *args, **kwargs))

    return call


def _lifted_within(
    method: Callable[Concatenate[Scheduler, P], R],
) -> Callable[Concatenate["AsyncScheduler", P], Coroutine[Any, Any, R]]:
    """Likewise, of a method that takes ``connection=``: then it runs on the loop, where that
    connection belongs."""
    lifted = _lifted(method)

    @wraps(method)
    async def call(self: "AsyncScheduler", /, *args: P.args, **kwargs: P.kwargs) -> R:
        connection = kwargs.get("connection")
        if connection is None:
            return await lifted(self, *args, **kwargs)
        kwargs["connection"] = AsyncTransaction(connection)
        return await cast("Awaitable[R]", method(self.scheduler, *args, **kwargs))

    return call


class AsyncScheduler:
    """As :class:`Scheduler`, with coroutines; see there for what each takes, returns and raises.

    A call that is cancelled is no longer waited for, but may still be carried out. ``connection=``
    takes those of asyncio: psycopg's, asyncpg's, SQLAlchemy's AsyncConnection and AsyncSession.
    """

    def __init__(
        self,
        database_url: str | None = None,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        home: str | None = None,
        settings: Settings | None = None,
        reveal: bool = False,
        log: int | None = None,
    ) -> None:
        self.scheduler = Scheduler(
            database_url,
            namespace=namespace,
            actor=actor,
            home=home,
            settings=settings,
            reveal=reveal,
            log=log,
        )
        self._threads: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        await self.run(self.scheduler.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections and ends the threads; a later call opens new ones."""
        await self.run(self.scheduler.close)
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)

    async def acting_as(self, actor: str) -> "AsyncScheduler":
        """As :meth:`Scheduler.acting_as`: on the same connections, for somebody else. It has
        threads of its own, which end with ``close`` or ``async with``."""
        other = AsyncScheduler(settings=self.scheduler.settings, reveal=self.scheduler.reveal)
        other.scheduler = await self.run(lambda: self.scheduler.acting_as(actor))
        return other

    async def run(self, call: Callable[[], R]) -> R:
        """The answer of a blocking call, made in a thread of this scheduler."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="horolog-scheduler")
        # The thread works in the caller's context, so that the caller's span is there too.
        within = copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, within.run, call)

    register = _lifted_within(Scheduler.register)
    reschedule = _lifted_within(Scheduler.reschedule)
    update = _lifted_within(Scheduler.update)
    pause = _lifted_within(Scheduler.pause)
    resume = _lifted_within(Scheduler.resume)
    cancel = _lifted_within(Scheduler.cancel)
    cancel_occurrence = _lifted(Scheduler.cancel_occurrence)
    trigger = _lifted_within(Scheduler.trigger)
    apply = _lifted(Scheduler.apply)
    zone_corrections = _lifted(Scheduler.zone_corrections)
    job = _lifted(Scheduler.job)
    jobs = _lifted(Scheduler.jobs)
    upcoming = _lifted(Scheduler.upcoming)
    compare = _lifted(Scheduler.compare)
    occurrence = _lifted(Scheduler.occurrence)
    occurrences = _lifted(Scheduler.occurrences)
    history = _lifted(Scheduler.history)
    changes = _lifted(Scheduler.changes)
    explain = _lifted(Scheduler.explain)
    due_at = _lifted(Scheduler.due_at)
    due_next = _lifted(Scheduler.due_next)
    executions = _lifted(Scheduler.executions)
    skips = _lifted(Scheduler.skips)
    statistics = _lifted(Scheduler.statistics)
    position = _lifted(Scheduler.position)
    log = _lifted(Scheduler.log)
    forget = _lifted(Scheduler.forget)
    limit_queue = _lifted(Scheduler.limit_queue)
    limited_queues = _lifted(Scheduler.limited_queues)
    set_alert = _lifted(Scheduler.set_alert)
    remove_alert = _lifted(Scheduler.remove_alert)
    alert_rules = _lifted(Scheduler.alert_rules)
    alert_rule = _lifted(Scheduler.alert_rule)
    alerts = _lifted(Scheduler.alerts)
    alert_history = _lifted(Scheduler.alert_history)
    dead_letters = _lifted(Scheduler.dead_letters)
    replay = _lifted(Scheduler.replay)
    discard = _lifted(Scheduler.discard)
    replay_many = _lifted(Scheduler.replay_many)

    @overload
    async def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: Literal[False] = ...,
        reason: str | None = ...,
        **options: Unpack[BackfillOptions],
    ) -> int: ...

    @overload
    async def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: Literal[True],
        reason: str | None = ...,
        **options: Unpack[BackfillOptions],
    ) -> list[PlannedRun]: ...

    async def backfill(
        self,
        job_id: Identifier,
        start: datetime,
        end: datetime,
        *,
        dry_run: bool = False,
        reason: str | None = None,
        **options: Unpack[BackfillOptions],
    ) -> int | list[PlannedRun]:
        """As :meth:`Scheduler.backfill`."""

        def call() -> int | list[PlannedRun]:
            if dry_run:
                return self.scheduler.backfill(job_id, start, end, dry_run=True, **options)
            return self.scheduler.backfill(job_id, start, end, reason=reason, **options)

        return await self.run(call)

    async def register_many(
        self, specs: Iterable[JobSpec] | AsyncIterable[JobSpec], *, batch: int = 1000
    ) -> AsyncGenerator[Job]:
        """As :meth:`Scheduler.register_many`; the specs may come asynchronously too."""
        loop = asyncio.get_running_loop()
        stated = _pulled(specs, loop) if isinstance(specs, AsyncIterable) else specs
        jobs = self.scheduler.register_many(stated, batch=batch)
        while chunk := await self.run(lambda: list(islice(jobs, batch))):
            for job in chunk:
                yield job

    async def follow(
        self, after: int = 0, *, topics: Sequence[str] | str | None = None
    ) -> AsyncGenerator[LoggedEvent]:
        """As :meth:`Scheduler.follow`; ends within a second of being closed or cancelled."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="horolog-follow")
        follower = await self.run(lambda: self.scheduler.follower(after, topics=topics))

        def page() -> list[LoggedEvent]:
            return self.scheduler.read_out([LoggedEvent.of(one) for one in follower.page()])

        try:
            while True:
                for told in await loop.run_in_executor(thread, page):
                    yield told
        finally:
            # Behind the page that the thread may still wait for, and not waited for here.
            thread.submit(follower.close)
            thread.shutdown(wait=False)


def _pulled(specs: AsyncIterable[JobSpec], loop: asyncio.AbstractEventLoop) -> Iterator[JobSpec]:
    """The specs as a thread reads them, each asked for in the loop where they come from."""
    source = aiter(specs)
    while True:
        try:
            yield asyncio.run_coroutine_threadsafe(_next(source), loop).result()
        except StopAsyncIteration:
            return


async def _next(source: AsyncIterator[JobSpec]) -> JobSpec:
    return await anext(source)
