"""Handlers for a first try: what `horolog dev` runs while there is no worker of one's own.

horolog job register ping --every 2
horolog job register echo --in 5 --payload '{"hello": "world"}'
horolog job register flaky --in 1 --payload '{"failures": 2}'
"""

import asyncio
from typing import Any

from horolog.application.worker.raised import Permanent, Retryable, Snooze
from horolog.application.worker.run import Run
from horolog.interface.worker import Worker

worker = Worker()


@worker.handles("ping")
async def ping(run: Run, **payload: Any) -> str:
    """Answers, whatever it is asked."""
    del run, payload
    return "pong"


@worker.handles("echo")
async def echo(run: Run, **payload: Any) -> dict[str, Any]:
    """Returns its payload."""
    del run
    return payload


@worker.handles("sleep")
async def sleep(run: Run, seconds: float = 1.0) -> float:
    """Takes its time."""
    del run
    await asyncio.sleep(seconds)
    return seconds


@worker.handles("flaky")
async def flaky(run: Run, failures: int = 2) -> str:
    """Fails as often as it is told to, then succeeds, as a struggling service does."""
    if run.attempt <= failures:
        raise ConnectionError(f"the sample service is down (attempt {run.attempt})")
    return f"succeeded at attempt {run.attempt}"


@worker.handles("poison")
async def poison(run: Run, **payload: Any) -> None:
    """Never succeeds, in a way that nobody can know beforehand."""
    del payload
    raise RuntimeError(f"the sample bug is still there (attempt {run.attempt})")


@worker.handles("hopeless")
async def hopeless(run: Run, **payload: Any) -> None:
    """Fails in a way that no further try would change."""
    del run, payload
    raise Permanent("the sample account was closed")


@worker.handles("busy")
async def busy(run: Run, after: float = 2.0) -> str:
    """Is told once by its downstream when to come back."""
    if run.attempt == 1:
        raise Retryable("the sample service is overloaded", after=after)
    return "came back"


@worker.handles("patient")
async def patient(run: Run, seconds: float = 2.0) -> str:
    """Comes back later without using up an attempt of its budget."""
    if run.attempt == 1:
        raise Snooze(seconds)
    return "waited"
