"""What becomes of a run, by what its handler does."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from horolog.application.worker.raised import Permanent, Retryable, Snooze
from horolog.application.worker.run import Run
from horolog.domain.errors import NotAllowed
from horolog.domain.reference import Ref
from horolog.domain.retry import Retry


async def test_a_run_is_attempted_then_succeeds_then_its_message_is_acknowledged(
    bench: Any,
) -> None:
    seen: list[Run] = []

    @bench.handlers.handles("work")
    async def work(run: Run, amount: int) -> dict[str, int]:
        seen.append(run)
        return {"double": amount * 2}

    ready = bench.ready("work", {"amount": 21})
    (message,) = await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert bench.last(ready).result == {"double": 42}
    assert bench.last(ready).actor == "worker/test"
    assert message.said == ["done"]
    assert (seen[0].key, seen[0].attempt, seen[0].fire_time) == (
        str(ready.occurrence), 1, ready.fire_time,
    )  # fmt: skip


async def test_def_handlers_run_in_threads(bench: Any) -> None:
    @bench.handlers.handles("work")
    def work(run: Run) -> str:
        return threading.current_thread().name

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.last(ready).result.startswith("horolog-handler")


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("error", "kind", "topics"),
    [
        (ConnectionRefusedError("no"), "transport", ["failed"]),
        (TimeoutError(), "transport", ["failed"]),
        (ValueError("bad"), "argument", ["failed", "dead_lettered"]),
        (Permanent("closed"), "permanent", ["failed", "dead_lettered"]),
        (Retryable("later", after=7), "retryable", ["failed"]),
        (RuntimeError("?"), "unknown", ["failed"]),
        (SystemExit(3), "unknown", ["failed"]),
        (KeyboardInterrupt(), "unknown", ["failed"]),
        (GeneratorExit(), "unknown", ["failed"]),
        (StopIteration("?"), "unknown", ["failed"]),
        (asyncio.CancelledError(), "unknown", ["failed"]),
    ],
)
async def test_what_a_handler_raises_is_its_outcome_and_never_the_worker_s_end(
    bench: Any, error: BaseException, kind: str, topics: list[str], is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> None:
            raise error

    else:

        @bench.handlers.handles("work")
        def sync_work(run: Run) -> None:
            raise error

    ready, after = bench.ready("work"), bench.ready("after")

    @bench.handlers.handles("after")
    async def next_one(run: Run) -> None:
        return

    bench.publish(ready)
    async with bench.working():
        await bench.until_ended(ready)
        bench.publish(after)
        await bench.until_ended(after)
    assert bench.topics(ready) == ["claimed", "attempted", *topics]
    failed = bench.events(ready)[2]
    assert (failed.kind, type(error).__name__ in failed.error) in {
        (kind, True), ("unknown", False),
    }  # fmt: skip
    if isinstance(error, Retryable):
        assert (failed.retry_at - bench.memory.stream(ready.occurrence)[2].recorded_at).seconds == 7


async def test_a_snooze_uses_up_no_attempt(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        raise Snooze(60)

    ready = bench.ready("work", retry=Retry(max_attempts=1))
    await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "snoozed"]
    assert bench.states.occurrence(ready.occurrence).failures == 0


async def test_the_last_failure_is_dead_lettered_with_its_owner(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        raise ConnectionError("down")

    ready = bench.ready("work", retry=Retry(max_attempts=1), owner="team")
    await bench.work_off(ready)
    dead = bench.last(ready)
    assert (dead.cause, dead.owner, dead.kind) == ("exhausted", "team", "transport")


@pytest.mark.parametrize(
    "text",
    ["a\x00b", "a\ud800b", "x" * 5_000_000, "\udcff\x00" * 1000],
    ids=["NUL", "surrogate", "5 MB", "many"],
)
async def test_text_that_cannot_be_stored_is_made_storable(bench: Any, text: str) -> None:
    @bench.handlers.handles("raises")
    async def raises(run: Run) -> None:
        raise RuntimeError(text)

    @bench.handlers.handles("returns")
    async def returns(run: Run) -> Any:
        return {"text": text[:50_000]}

    raising, returning = bench.ready("raises"), bench.ready("returns")
    await bench.work_off(raising, returning)
    error = bench.last(raising).error
    assert len(error) < 10_000
    assert "\x00" not in error
    error.encode()
    assert "\x00" not in str(bench.last(returning).result)


async def test_an_error_whose_text_cannot_be_had_is_a_failure_all_the_same(bench: Any) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        raise Broken

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.last(ready).error == "Broken: (its text cannot be had: ZeroDivisionError)"


class _Ends(Exception):
    """Reading it ends the process, if nobody is careful."""

    def __str__(self) -> str:
        raise SystemExit(9)


class _EndsByItsAttributes(Exception):
    @property
    def sqlstate(self) -> str:
        raise SystemExit(9)


class _NeverAgain(Retryable):
    def __init__(self) -> None:
        super().__init__("no such time")
        self.after = float("inf")


class _Sleeps(Snooze):
    def __init__(self) -> None:
        super().__init__(1)
        self.seconds = float("nan")


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [_Ends, _EndsByItsAttributes, _NeverAgain, _Sleeps])
async def test_an_exception_that_cannot_be_read_is_a_failure_and_no_run_is_left_undecided(
    bench: Any, error: type[Exception], is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> None:
            raise error

    else:

        @bench.handlers.handles("work")
        def work_in_thread(run: Run) -> None:
            raise error

    ready = bench.ready("work")
    (message,) = await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "failed"]
    assert bench.last(ready).error.startswith(f"{error.__name__}: (it cannot be read: ")
    assert message.said == ["done"]


async def test_an_outcome_that_cannot_be_had_leaves_the_run_open_for_another(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        await asyncio.Event().wait()

    ready = bench.ready("work")
    bench.publish(ready)
    async with bench.working():
        await bench.until(lambda: bench.loop._admission.find(ready.occurrence, 1))
        attempt = bench.loop._admission.find(ready.occurrence, 1)
        with pytest.raises(OverflowError):
            bench.loop._finishing.failed(attempt, "retryable", "never again", float("inf"))
        assert not attempt.decided
        bench.loop._finishing.failed(attempt, "unknown", "said otherwise")
        await bench.until_ended(ready)
    assert bench.last(ready).error == "said otherwise"


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_result_whose_own_code_ends_the_process_is_a_failure(
    bench: Any, is_async: bool
) -> None:
    class Ends(dict[str, int]):
        def items(self) -> Any:
            raise SystemExit(9)

        def __len__(self) -> int:
            raise SystemExit(9)

        def __iter__(self) -> Any:
            raise SystemExit(9)

    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> Any:
            return Ends(a=1)

    else:

        @bench.handlers.handles("work")
        def work_in_thread(run: Run) -> Any:
            return Ends(a=1)

    ready = bench.ready("work")
    (message,) = await bench.work_off(ready)
    assert message.said == ["done"]


@pytest.mark.parametrize("after", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_wait_that_no_calendar_has_is_refused_where_it_is_asked_for(after: float) -> None:
    with pytest.raises(ValueError, match="from 0 to a year"):
        Retryable("later", after=after)
    with pytest.raises(ValueError, match="from 0 to a year"):
        Snooze(after)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "no JSON form"),
        ("x" * 70_000, "more than 65536"),
        ({1, object()}, "no JSON form"),
    ],
)
async def test_a_result_that_cannot_be_kept_is_told_and_not_tried_again(
    bench: Any, value: object, reason: str
) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> object:
        return value

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.topics(ready)[2:] == ["failed", "dead_lettered"]
    assert reason in bench.events(ready)[2].error


async def test_a_payload_that_does_not_fit_never_reaches_the_handler(bench: Any) -> None:
    ran: list[int] = []

    @bench.handlers.handles("work")
    async def work(run: Run, amount: int) -> None:
        ran.append(amount)

    ready = bench.ready("work", {"amount": "many", "colour": "red"})
    await bench.work_off(ready)
    failed = bench.events(ready)[2]
    assert (ran, failed.kind) == ([], "argument")
    assert "amount: " in failed.error
    assert "colour: " in failed.error
    assert bench.topics(ready)[-1] == "dead_lettered"


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_timeout_counts_from_the_start_and_is_tried_again(
    bench: Any, is_async: bool
) -> None:
    release = threading.Event()
    noticed: list[bool] = []
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> None:
            await asyncio.sleep(60)

    else:

        @bench.handlers.handles("work")
        def sync_work(run: Run) -> None:
            release.wait(10)
            noticed.append(run.cancelled)

    ready = bench.ready("work", timeout=0.02)
    (message,) = await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "failed"]
    assert bench.last(ready).kind == "timeout"
    assert message.said == ["done"]
    release.set()
    if not is_async:
        await bench.until(lambda: noticed)
        assert noticed == [True]


async def test_a_handler_that_ignores_its_cancellation_is_decided_without(bench: Any) -> None:
    release = asyncio.Event()

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    ready = bench.ready("work", timeout=0.01)
    bench.publish(ready)
    async with bench.working(cancel_grace_s=0.02):
        await bench.until_ended(ready)
        release.set()
    assert bench.topics(ready) == ["claimed", "attempted", "failed"]


async def test_references_are_resolved_when_the_run_begins(bench: Any) -> None:
    @dataclass
    class Card:
        number: str

    @bench.handlers.resolves("cards")
    async def card(ref: str) -> Card:
        return Card(ref)

    @bench.handlers.resolves("cards/vip")
    def vip(ref: str) -> Card:
        return Card(f"vip {ref}")

    @bench.handlers.handles("work")
    async def work(run: Run, one: Card, many: list[Any], kept: Ref) -> list[str]:
        return [one.number, *[item.number for item in many], kept.path]

    payload = {
        "one": {"$ref": "cards/1"},
        "many": [{"$ref": "cards/vip/2"}],
        "kept": {"$ref": "cards/3"},
    }
    ready = bench.ready("work", payload)
    await bench.work_off(ready)
    assert bench.last(ready).result == ["cards/1", "vip cards/vip/2", "cards/3"]


async def test_a_reference_without_resolver_says_what_to_register(bench: Any) -> None:
    @bench.handlers.handles("work")
    def work(run: Run, card: Any) -> None:
        return

    ready = bench.ready("work", {"card": {"$ref": "cards/1"}})
    await bench.work_off(ready)
    assert bench.events(ready)[2].kind == "argument"
    assert "@worker.resolves('cards')" in bench.events(ready)[2].error


@pytest.mark.parametrize(
    ("answer", "on_unknown", "ran", "end"),
    [
        (True, "retry", False, ["succeeded"]),
        (False, "dead_letter", True, ["succeeded"]),
        (None, "retry", True, ["succeeded"]),
        (None, "dead_letter", False, ["failed", "dead_lettered"]),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_after_a_lost_attempt_reconcile_is_asked_first(
    bench: Any, answer: bool | None, on_unknown: str, ran: bool, end: list[str], is_async: bool
) -> None:
    runs: list[int] = []
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run, amount: int) -> None:
            runs.append(amount)

        @work.reconcile
        async def happened(run: Run, amount: int) -> bool | None:
            return answer

    else:

        @bench.handlers.handles("work")
        def sync_work(run: Run, amount: int) -> None:
            runs.append(amount)

        @sync_work.reconcile
        def sync_happened(run: Run, amount: int) -> bool | None:
            return answer

    ready = bench.ready("work", {"amount": 5})
    ready = ready.model_copy(update={"lost": True, "on_unknown": on_unknown})
    await bench.work_off(ready)
    assert bench.topics(ready)[2:] == end
    assert runs == ([5] if ran else [])
    if answer:
        assert bench.last(ready).reason == "reconciled"
    if end[-1] == "dead_lettered":
        assert bench.last(ready).cause == "unknown_outcome"


async def test_an_ordinary_run_is_not_reconciled(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> str:
        return "ran"

    @work.reconcile
    async def happened(run: Run) -> bool:
        raise AssertionError("asked")

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.last(ready).result == "ran"


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_transactional_handler_has_a_connection_and_succeeds_in_it(
    bench: Any, is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work", transactional=True)
        async def work(run: Run) -> int:
            run.connection.append("effect")
            return len(run.connection)

    else:

        @bench.handlers.handles("work", transactional=True)
        def sync_work(run: Run) -> int:
            run.connection.append("effect")
            return len(run.connection)

    ready = bench.ready("work")
    (message,) = await bench.work_off(ready)
    assert bench.last(ready).result == 1
    assert message.said == ["done"]


async def test_a_handler_that_is_not_transactional_is_told_so(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        with pytest.raises(NotAllowed, match="transactional=True"):
            _ = run.connection

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.topics(ready)[-1] == "succeeded"


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_last_result_of_the_job_is_at_hand(bench: Any, is_async: bool) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> int:
            return (run.last_result or 0) + 1

    else:

        @bench.handlers.handles("work")
        def sync_work(run: Run) -> int:
            return (run.last_result or 0) + 1

    first, second = bench.claim(bench.register("work"), 2)
    await bench.work_off(first)
    await bench.work_off(second)
    assert (bench.last(first).result, bench.last(second).result) == (1, 2)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_heartbeat_extends_the_lease_at_the_handler_s_word(
    bench: Any, is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def work(run: Run) -> None:
            await run.heartbeat()

    else:

        @bench.handlers.handles("work")
        def sync_work(run: Run) -> None:
            run.heartbeat()

    ready = bench.ready("work")
    await bench.work_off(ready)
    assert bench.extended == [[ready.occurrence]]
