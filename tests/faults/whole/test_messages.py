"""Messages that are there twice, that lie, or that make no sense: the log decides, nothing else."""

from datetime import UTC, datetime
from uuid import uuid4

from tests.faults.system.account import account
from tests.faults.system.stranger import a_stranger_repeats, publish
from tests.faults.system.system import System

from horolog.application.ready import ReadyRun, decode, encode


def test_every_message_is_delivered_twice(system: System) -> None:
    system.until_ready(system.start_worker(), system.start_worker(), system.start_scanner())
    with a_stranger_repeats(system) as stranger:
        system.register(200, over_s=1.5)
        system.register_repeating(5, every_s=0.2, times=6)
        system.until_done()
    assert account(system).problems == []
    runs = sum(len(decode(data)) for data in stranger.heard)
    assert stranger.repeated == len(stranger.heard)
    assert runs >= 230
    system.until(lambda: system.counter("redeliveries") >= runs, "each repetition is counted")


def test_a_strangers_messages_are_set_aside_and_counted(system: System) -> None:
    system.until_ready(system.start_worker(), system.start_scanner())
    with a_stranger_repeats(system, share=0.0) as listener:
        system.register(20, over_s=0.1)
        system.until_done()
    finished = [run for data in listener.heard for run in decode(data)]
    strange = [
        b"",
        b"\xff\x00 not JSON",
        b'"JSON, and no message"',
        b'{"format":1,"runs":[{"occurrence":"no id"}]}',
        b'{"format":1,"runs":[' + b"[" * 10_000 + b"]}",
        encode([invented()]),
        encode([invented().model_copy(update={"occurrence": finished[0].job})]),
        encode([finished[0].model_copy(update={"attempt": 2, "version": 4})]),
    ]
    publish(system, [*strange, encode(finished[:1]), encode([*finished[1:3], invented()])])
    system.until(lambda: system.messages() == 0, "they are set aside")
    # What is finished is a redelivery, whichever attempt of it a message invents. (A worker that is
    # slow to answer gets a message again, and counts it again.)
    for counter, least in (("strange_messages", 8), ("redeliveries", 4)):
        system.until(lambda name=counter, n=least: system.counter(name) >= n, f"{least} {counter}")
    system.register(20, over_s=0.1)
    system.until_done()
    assert account(system).problems == []


def invented() -> ReadyRun:
    """A run of an occurrence that never was, with a handler that the worker has."""
    return ReadyRun(
        occurrence=uuid4(),
        job=uuid4(),
        partition=0,
        fire_time=datetime.now(UTC),
        version=1,
        attempt=1,
        name="plain",
    )
