"""A downstream that says when to come back is believed, whatever client says it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from horolog.application.worker.asked_to_wait import MAX_S, asked_to_wait_s
from horolog.application.worker.run import Run

NOW = datetime(2027, 1, 1, tzinfo=UTC)


class ClientError(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__("busy")
        vars(self).update(attributes)


def response(value: Any) -> SimpleNamespace:
    return SimpleNamespace(status_code=429, headers={"Retry-After": value})


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ClientError(response=response("30")), 30.0),
        (ClientError(response=response("Fri, 01 Jan 2027 00:02:00 GMT")), 120.0),
        (ClientError(response=response("Thu, 31 Dec 2026 00:00:00 GMT")), 0.0),
        (ClientError(response=response("1e9")), MAX_S),
        (ClientError(headers={"retry-after": "7"}), 7.0),
        (ClientError(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "9"}}}), 9.0),
        (ClientError(retry_after=2.5), 2.5),
        (ClientError(response=response("soon")), None),
        (ClientError(response=response("nan")), None),
        (ClientError(response=response(True)), None),
        (ClientError(response=SimpleNamespace(headers=None)), None),
        (ValueError("no"), None),
    ],
)
def test_it_is_read_from_what_the_usual_clients_raise(
    error: Exception, seconds: float | None
) -> None:
    assert asked_to_wait_s(error, NOW) == seconds


def test_it_is_read_from_what_an_error_was_raised_from() -> None:
    outer = RuntimeError("wrapped")
    outer.__cause__ = ClientError(response=response("30"))
    assert asked_to_wait_s(outer, NOW) == 30.0


async def test_a_retry_comes_when_the_downstream_asked_for(bench: Any) -> None:
    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        raise ClientError(response=response("77"))

    ready = bench.ready("work")
    await bench.work_off(ready)
    recorded = bench.memory.stream(ready.occurrence)[2]
    assert (recorded.event.retry_at - recorded.recorded_at).total_seconds() == 77
