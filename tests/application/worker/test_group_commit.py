"""How many appends are on their way at once, and what each of them takes along."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

from tests.application.worker.conftest import HandClock

from horolog.application.decision import Decision, Guard
from horolog.application.log import Appended, Recorded, Verdict
from horolog.application.worker.group_commit import AT_ONCE, GroupCommit
from horolog.application.worker.settings import WorkerSettings
from horolog.domain.errors import StoreUnavailable


class SlowLog:
    """Answers an append when it is told to."""

    def __init__(self) -> None:
        self.under_way: list[tuple[int, asyncio.Future[None]]] = []

    async def append(self, decisions: Sequence[Decision]) -> Appended:
        answered = asyncio.get_running_loop().create_future()
        self.under_way.append((len(decisions), answered))
        await answered
        return Appended(["accepted"] * len(decisions), 1, datetime.now(UTC))

    async def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        del stream, after, limit
        return []

    def answer(self, error: Exception | None = None) -> None:
        """The oldest of those that are under way."""
        _, answered = self.under_way.pop(0)
        if error is None:
            answered.set_result(None)
        else:
            answered.set_exception(error)

    @property
    def sizes(self) -> list[int]:
        return [size for size, _ in self.under_way]


class Committing:
    def __init__(self) -> None:
        self.log = SlowLog()
        self.verdicts: list[Verdict] = []
        self.commit = GroupCommit(self.log, HandClock(), WorkerSettings(append_decisions=20))
        self.task = asyncio.create_task(self.commit.run())

    def submit(self, count: int) -> None:
        for _ in range(count):
            decision = Decision(Guard("nothing", UUID(int=0), 0), 0)
            self.commit.submit(decision, self.verdicts.append)

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def rest() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_few_decisions_wait_for_the_append_that_is_on_its_way() -> None:
    committing = Committing()
    committing.submit(3)
    await rest()
    committing.submit(9)
    await rest()
    assert committing.log.sizes == [3]
    assert not committing.commit.idle.is_set()
    committing.log.answer()
    await rest()
    assert committing.log.sizes == [9]
    committing.log.answer()
    await rest()
    assert len(committing.verdicts) == 12
    assert committing.commit.idle.is_set()
    await committing.end()


async def test_where_many_wait_a_second_append_follows_and_no_third() -> None:
    committing = Committing()
    committing.submit(3)
    await rest()
    committing.submit(50)
    await rest()
    assert committing.log.sizes == [3, 20]
    assert len(committing.log.sizes) == AT_ONCE
    assert committing.commit.waiting == 30
    committing.log.answer()
    await rest()
    assert committing.log.sizes == [20, 20]
    committing.log.answer()
    await rest()
    assert committing.log.sizes == [20, 10]
    committing.log.answer()
    committing.log.answer()
    await rest()
    assert len(committing.verdicts) == 53
    assert committing.commit.idle.is_set()
    await committing.end()


async def test_one_append_that_failed_holds_up_no_other_and_is_tried_again() -> None:
    committing = Committing()
    committing.submit(3)
    await rest()
    committing.submit(20)
    await rest()
    committing.log.answer(StoreUnavailable("cut off"))
    await rest()
    assert not committing.commit.available
    assert len(committing.verdicts) == 0
    committing.log.answer()
    await rest()
    assert len(committing.verdicts) == 20
    assert not committing.commit.idle.is_set()
    await committing.end()
