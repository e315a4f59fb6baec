"""A long backlog passes through in bounded batches; idleness costs next to nothing."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from horolog.application.scanner.settings import ScannerSettings
from horolog.infrastructure.postgres.database import Database

if TYPE_CHECKING:
    from tests.faults.scanner.conftest import Stage


async def test_a_backlog_of_twenty_thousand_is_drained_in_bounded_batches(
    stage: "Stage",
) -> None:
    jobs = stage.register(20_000, in_s=-5)
    batch = 500
    # The sweep after the backlog is half a minute away: what comes then waits for none.
    settings: dict[str, Any] = {"wheel_capacity": 4_000, "sweep_s": 30.0}
    async with stage.scanner(claim_batch=batch, **settings) as signals:
        await asyncio.wait_for(signals.reached("published", 20_000), 60)
        assert signals.counts["appended"] >= 20_000 / batch
        late = stage.register(1)
        await asyncio.wait_for(signals.reached("published", 20_001), 20)
    await stage.check_claims(jobs | late)
    assert len(await stage.queued()) == 20_001


async def test_a_queue_without_workers_hides_nothing_and_takes_no_more_than_its_memory(
    stage: "Stage",
) -> None:
    stage.register(3_000, in_s=-5, queue="dead")
    live = stage.register(10, in_s=-1, queue="live")
    settings: dict[str, Any] = {"wheel_capacity": 400, "ahead_first": 20, "read_batch": 500}
    async with stage.scanner(**settings) as signals:
        await stage.until(lambda: live <= stage.claimed_jobs(), 5)
        late = stage.register(5, in_s=1, queue="live")
        await stage.until(lambda: late <= stage.claimed_jobs(), 2)
        assert signals.counts["claimed"] < 100, "what nobody takes is not claimed in vain"


async def test_idle_it_asks_twice_a_second_at_most_and_hardly_computes(
    stage: "Stage", monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.register(5_000, in_s=7_200)
    asked: list[float] = []
    query = Database.query

    def counted(self: Database, statement: Any, params: Any = None) -> list[Any]:
        asked.append(time.monotonic())
        return query(self, statement, params)

    async with stage.scanner() as signals:
        await asyncio.wait_for(signals.reached("looked", 2), 10)
        monkeypatch.setattr(Database, "query", counted)
        began, computed = time.monotonic(), time.process_time()
        await asyncio.wait_for(signals.reached("looked", 4), 20)
        elapsed_s = time.monotonic() - began
        computed_s = time.process_time() - computed
        monkeypatch.undo()
    # A loop comes after its pause or later, never sooner: once more than whole pauses fit.
    default = ScannerSettings()
    pauses_s = [
        default.renew_s, default.sweep_s, default.look_interval_s, default.inbox_interval_s,
        default.watch_interval_s, default.alert_interval_s,
    ]  # fmt: skip
    assert len(asked) <= sum(int(elapsed_s / pause_s) + 1 for pause_s in pauses_s)
    assert sum(1 / pause_s for pause_s in pauses_s) <= 2
    assert computed_s < 0.05 * elapsed_s
