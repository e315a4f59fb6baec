"""An attempt whose lease may be over does not begin: another worker may have the run by then."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from tests.application.worker.conftest import Bench

from horolog.application.decision import Decision, decide_on_occurrence
from horolog.application.log import Appended
from horolog.application.worker.run import Run
from horolog.domain.occurrence import decide_loss
from horolog.domain.origin import Origin
from horolog.domain.retry import Retry


def stand_still(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, lost: bool) -> None:
    """The next append is accepted, and its answer is heard 40 s later."""
    append, stood = bench.append, False

    async def slow(decisions: Sequence[Decision]) -> Appended:
        nonlocal stood
        appended = await append(decisions)
        if not stood:
            stood = True
            bench.clock.advance(40.0)
            if lost:
                give_up_as_lost(bench, decisions[0].guard.id)
        return appended

    monkeypatch.setattr(bench, "append", slow)


def give_up_as_lost(bench: Bench, occurrence: UUID) -> None:
    """A scanner finds the lease over."""
    state = bench.states.occurrence(occurrence)
    assert state is not None
    lost = decide_loss(
        state,
        retry=Retry(),
        on_unknown="retry",
        now=bench.memory.now(),
        owner=None,
        origin=Origin("scanner"),
    )
    assert bench.memory.append([decide_on_occurrence(state, lost)[0]]).verdicts == ["accepted"]


async def test_what_was_given_up_before_it_could_begin_does_not_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    @bench.handlers.handles("report")
    async def report(run: Run) -> None:
        began.append(run.key)

    ready = bench.ready("report")
    stand_still(bench, monkeypatch, lost=True)
    message = bench.publish(ready)
    async with bench.working(lease_s=30.0):
        await bench.until(lambda: "done" in message.said)
    assert began == []
    assert bench.topics(ready) == ["claimed", "attempted", "lost"]


async def test_what_is_still_its_own_is_given_back_and_uses_up_no_attempt(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[str] = []

    @bench.handlers.handles("report")
    def report(run: Run) -> None:
        began.append(run.key)

    ready = bench.ready("report")
    stand_still(bench, monkeypatch, lost=False)
    bench.publish(ready)
    async with bench.working(lease_s=30.0):
        await bench.until(lambda: bench.topics(ready)[-1] == "snoozed")
    assert began == []
    assert bench.last(ready).reason == "its lease was nearly over before it could begin"
