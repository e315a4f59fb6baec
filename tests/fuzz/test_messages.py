"""Whatever bytes lie in the ready queue: the worker that takes them sets them aside and goes on.

The whole worker runs in memory: its taking, the look-up of what no scanner has signed, its
admission. Between the strange messages lies an honest one, which runs once, as the log has it.
"""

import asyncio
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.application.worker.conftest import Bench
from tests.fuzz.conftest import EXAMPLES, fuzzed

from horolog.application.ready import ReadyRun, encode, signed
from horolog.application.worker.run import Run

KEY = b"k" * 32

fewer = settings(fuzzed, max_examples=max(1, EXAMPLES // 3))
"""Each example is many messages, and a worker from its start to its end."""


class Flipped(NamedTuple):
    """The honest message with some bits of one of its bytes changed."""

    at: int
    change: int


IDS = st.uuids().map(str) | st.just("THE GENUINE ONE") | st.text(max_size=8)
SMALL = st.integers(-3, 3) | st.just(10**40) | st.just(-(10**40)) | st.none() | st.booleans()
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=12,
)
RUNS = st.fixed_dictionaries(
    {"occurrence": IDS, "job": IDS, "partition": SMALL, "version": SMALL, "attempt": SMALL},
    optional={
        "fire_time": st.sampled_from(["2027-03-01T12:00:00Z", "9999-12-31T23:59:59+00:00", "0", ""])
        | st.integers(),
        "name": st.sampled_from(["work", "nobody's", "", "\0"]) | st.text(max_size=5),
        "queue": st.sampled_from(["default", "other", "", "a.b>*"]),
        "payload": ANYTHING,
        "timeout": st.floats() | st.none(),
        "retry": ANYTHING,
        "kind": st.sampled_from(["schedule", "trigger", "backfill", "other"]),
        "since": ANYTHING,
        "claimed_in": ANYTHING,
        "lost": ANYTHING,
    },
)
SHAPED = st.fixed_dictionaries(
    {"runs": st.lists(RUNS, max_size=3) | ANYTHING},
    optional={"format": st.sampled_from([1, 1, 1, 2, "1", None]), "mac": st.text(max_size=40)},
)
MESSAGES = (
    st.binary(max_size=80)
    | SHAPED.map(lambda shaped: json.dumps(shaped).encode("utf-8", "surrogatepass"))
    | ANYTHING.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))
    | st.builds(Flipped, st.integers(0, 400), st.integers(1, 255))
    | st.integers(0, 400)
)
"""Bytes; or the honest message, changed; or a number: cut off there."""

DEEP = b'{"runs":[' + b'{"payload":' * 5_000
MANY = b'{"format":1,"runs":[%b]}' % b",".join([b"{}"] * 10_000)


def made(strange: Any, honest: bytes, run: ReadyRun) -> bytes:
    """The bytes of a strange message."""
    if isinstance(strange, int):
        return honest[: strange % len(honest)]
    if isinstance(strange, Flipped):
        at, change = strange.at % len(honest), strange.change
        return honest[:at] + bytes([honest[at] ^ change]) + honest[at + 1 :]
    return strange.replace(b"THE GENUINE ONE", str(run.occurrence).encode())


@given(st.lists(MESSAGES, min_size=1, max_size=20))
@example(
    [
        b'{"runs":[{"occurrence":"%b","job":"%b","partition":0,"version":1,"attempt":1,'
        b'"fire_time":"2027-03-01T12:00:00Z","name":"work","retry":{"unheard":0}}]}'
        % (b"0" * 32, b"0" * 32)
    ]
)
@example([b"", b"{}", b"null", b'{"format":1,"runs":[]}', DEEP, MANY, b"\xff\xfe\x00"])
@fewer
def test_strange_messages_are_set_aside_and_harm_nobody(strange: list[Any]) -> None:
    asyncio.run(_taken(strange, KEY))


@given(st.lists(MESSAGES, min_size=1, max_size=20))
@fewer
def test_without_a_key_they_still_write_nothing(strange: list[Any]) -> None:
    asyncio.run(_taken(strange, None))


async def _taken(strange: list[Any], key: bytes | None) -> None:
    bench, ran = Bench(), list[dict[str, Any]]()
    bench.patience_s = 3.0
    bench.key = key

    @bench.handlers.handles("work")
    async def work(run: Run, **payload: Any) -> None:
        ran.append(payload)

    run, another = bench.ready("work", {"amount": 1}), bench.ready("work", {"amount": 2})
    honest = encode([run]) if key is None else signed(encode([run]), key)
    before = len(bench.memory.log(limit=10_000))
    # The honest message itself, with nothing changed that means anything, is no stranger's.
    data = [made(each, honest, another) for each in strange]
    messages = [bench.publish_raw(each) for each in data]
    own = bench.publish_raw(honest)
    async with bench.working():
        await bench.until_ended(run)
        await bench.until(lambda: own.said and all(message.said for message in messages))
    events = bench.memory.log(limit=10_000)[before:]
    assert {event.stream for event in events} <= {run.occurrence, another.occurrence}
    assert bench.topics(run) == ["claimed", "attempted", "succeeded"]
    assert len(events) == 2 * len(ran) <= 4, "no more is written than what the honest runs did"
    if key is not None:
        assert sorted(payload["amount"] for payload in ran) == [1, 2][: len(ran)]
    for message, given_ in zip(messages, data, strict=True):
        assert message.said[-1] in ("never", "done", "later")
        # Where some run in it has the shape of one, the log is asked about it.
        if b'"occurrence"' not in given_:
            assert message.said == ["never"]
    thrown = sum(message.said == ["never"] for message in messages)
    assert bench.counts.get("strange_messages", 0) >= thrown


@pytest.mark.parametrize("data", [DEEP, b"\xff" * 1_000_000])
async def test_a_large_strange_message_is_set_aside(data: bytes) -> None:
    await _taken([data], KEY)
