"""Runs of jobs with a subject: opened just before the handler, sealed again right after it."""

import json
from typing import Any

import pytest

from horolog.application.privacy.ports import NoKeyring
from horolog.application.worker.run import Run
from horolog.domain.errors import NoMasterKey, StoreUnavailable
from horolog.domain.sealed import envelope, sealed_text, token_of

CANARY = "canary-4111"


def everything_said(bench: Any) -> str:
    return " ".join(event.state.decode() for event in bench.memory.tables.events)


def opened(bench: Any, value: object) -> Any:
    token = token_of(value)
    assert token is not None
    return bench.keyring.open(token).value


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_handler_sees_the_payload_and_the_log_does_not(
    bench: Any, is_async: bool
) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def _(run: Run, card: str) -> dict[str, str]:
            return {"charged": card}
    else:

        @bench.handlers.handles("work")
        def _(run: Run, card: str) -> dict[str, str]:
            return {"charged": card}

    ready = bench.ready("work", {"card": CANARY}, subject="ann")
    (message,) = await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "succeeded"]
    assert opened(bench, bench.last(ready).result) == {"charged": CANARY}
    assert CANARY.encode() not in message.data
    assert CANARY not in everything_said(bench)


@pytest.mark.parametrize("is_async", [True, False])
async def test_what_the_handler_raises_is_sealed_too(bench: Any, is_async: bool) -> None:
    if is_async:

        @bench.handlers.handles("work")
        async def _(run: Run, card: str) -> None:
            raise ValueError(f"no such card: {card}")
    else:

        @bench.handlers.handles("work")
        def _(run: Run, card: str) -> None:
            raise ValueError(f"no such card: {card}")

    ready = bench.ready("work", {"card": CANARY}, subject="ann")
    await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "failed", "dead_lettered"]
    assert opened(bench, bench.last(ready).error) == f"ValueError: no such card: {CANARY}"
    assert CANARY not in everything_said(bench)


async def test_a_payload_that_does_not_fit_and_a_result_that_cannot_be_kept_say_nothing(
    bench: Any,
) -> None:
    @bench.handlers.handles("fussy")
    async def _(run: Run, other: int) -> None: ...

    @bench.handlers.handles("odd")
    async def _(run: Run, card: str) -> object:
        return type(CANARY, (), {"__slots__": ()})()

    for name in ("fussy", "odd"):
        ready = bench.ready(name, {"card": CANARY}, subject="ann")
        await bench.work_off(ready)
        assert token_of(bench.last(ready).error) is not None
    assert CANARY not in everything_said(bench)


async def test_a_job_with_a_subject_and_no_payload_seals_its_results(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def _(run: Run) -> str:
        return CANARY

    ready = bench.ready("work", subject="ann")
    await bench.work_off(ready)
    assert opened(bench, bench.last(ready).result) == CANARY


async def test_a_run_of_a_forgotten_subject_ends_as_cancelled_and_its_handler_is_not_called(
    bench: Any,
) -> None:
    called: list[Any] = []

    @bench.handlers.handles("work")
    async def _(run: Run, card: str) -> None:
        called.append(card)

    ready = bench.ready("work", {"card": CANARY}, subject="ann")
    bench.memory.tables.sealed["ann"].values = None
    (message,) = await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "cancel_requested", "stopped"]
    assert bench.last(ready).reason == "the subject of its job was forgotten"
    assert message.said == ["done"]
    assert called == []


async def test_a_worker_without_a_master_key_leaves_such_runs_to_others(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    @bench.handlers.handles("work")
    async def _(run: Run, card: str) -> None: ...

    ready, plain = (
        bench.ready("work", {"card": CANARY}, subject="ann"),
        bench.ready("work", {"card": "x"}),
    )
    bench.keyring = NoKeyring()
    sealed, other = bench.publish(ready), bench.publish(plain)
    async with bench.working():
        await bench.until(lambda: sealed.said and other.said)
    assert sealed.said == ["later"]
    assert other.said == ["done"]
    assert bench.topics(ready) == ["claimed"]
    assert "has no master key" in caplog.text


@pytest.mark.parametrize(
    "error", [NoMasterKey("the key is wrapped with another"), StoreUnavailable("away")]
)
async def test_a_run_that_cannot_be_opened_now_is_given_back_without_using_up_an_attempt(
    bench: Any, error: Exception
) -> None:
    @bench.handlers.handles("work")
    async def _(run: Run, card: str) -> None: ...

    ready = bench.ready("work", {"card": CANARY}, subject="ann")

    class Locked(NoKeyring):
        has_master_key = True

        def open(self, token: object) -> None:
            raise error

    bench.keyring = Locked()
    await bench.work_off(ready)
    assert bench.topics(ready) == ["claimed", "attempted", "snoozed"]
    assert str(error) in bench.last(ready).reason


async def test_a_payload_that_was_copied_from_another_job_is_refused(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def _(run: Run, card: str) -> None: ...

    other = bench.register("work", {"card": CANARY}, subject="ann")
    ready = bench.ready("work", {"card": "x"}, subject="ann")
    forged = ready.model_copy(update={"payload": other.definition.payload})
    await bench.work_off(forged)
    assert "sealed for another job" in bench.last(ready).error


async def test_a_run_that_was_not_sealed_is_not_touched(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def _(run: Run, **payload: Any) -> Any:
        return payload

    bench.keyring = NoKeyring()
    ready = bench.ready("work", {"a": {"$sealed": "no"}})
    await bench.work_off(ready)
    assert bench.last(ready).result == {"a": {"$sealed": "no"}}


def test_the_forms_of_sealed_values_are_json_and_text(bench: Any) -> None:
    job = bench.register("work", {"card": CANARY}, subject="ann")
    token = token_of(job.definition.payload)
    assert token is not None
    assert json.loads(json.dumps(envelope(token))) == job.definition.payload
    assert token_of(sealed_text(token)) == token
