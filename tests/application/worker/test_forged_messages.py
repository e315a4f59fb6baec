"""A message says what to do only if a scanner signed it; else the log says it."""

from typing import Any

import pytest

from horolog.application.ready import decode, encode, is_signed, signed
from horolog.application.worker.run import Run

KEY = b"k" * 32


def test_a_signature_is_for_just_this_message_and_older_releases_pass_over_it(bench: Any) -> None:
    data = encode([bench.ready("work", {"amount": 1})])
    made = signed(data, KEY)
    assert decode(made) == decode(data)
    assert is_signed(made, KEY)
    for forged in (
        data, made[:-1], made.replace(b'"amount":1', b'"amount":9'), signed(data, b"x"),
        data[:-1] + made[-42:].replace(b"mac", b"mad"), b"", b"{}", made[-42:],
    ):  # fmt: skip
        assert not is_signed(forged, KEY)


@pytest.mark.parametrize(
    "other", [{"payload": {"amount": 9}}, {"timeout": 0.01}, {"name": "other"}]
)
async def test_a_forged_message_of_a_genuine_claim_runs_what_the_log_says(
    bench: Any, other: dict[str, Any]
) -> None:
    bench.key, seen = KEY, list[tuple[str, int]]()
    for name in ("work", "other"):

        @bench.handlers.handles(name)
        async def work(run: Run, amount: int) -> None:
            seen.append((run.name, amount))

    honest, forged = bench.ready("work", {"amount": 1}), bench.ready("work", {"amount": 2})
    invented = bench.ready("work", {"amount": 3}).model_copy(update={"version": 7})
    strange = bench.publish_raw(encode([invented]))
    bench.publish_raw(signed(encode([honest]), KEY))
    message = bench.publish(forged.model_copy(update=other))
    async with bench.working():
        await bench.until_ended(honest, forged)
        await bench.until(lambda: strange.said)
    assert sorted(seen) == [("work", 1), ("work", 2)]
    assert message.said == ["done"]
    assert strange.said == ["never"]
    assert bench.counts["unsigned_messages"] == 2


async def test_an_unsigned_message_waits_while_the_log_is_away(bench: Any) -> None:
    bench.key = KEY

    @bench.handlers.handles("work")
    async def work(run: Run) -> None:
        return

    ready = bench.ready("work")
    bench.publish(ready)
    bench.away = True
    async with bench.working():
        await bench.settled()
        bench.away = False
        bench.clock.advance(1)
        await bench.until_ended(ready)
    assert bench.topics(ready)[-1] == "succeeded"
