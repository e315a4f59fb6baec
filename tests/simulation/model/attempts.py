"""The attempts of a run: none is called lost that was well, and budgets and pauses are kept."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from tests.simulation.model.account import SLACK, Account, Event, Life


def check_losses(account: Account, life: Life, identity: UUID) -> None:
    """No attempt is lost whose worker lived, was never frozen, and could reach the log."""
    if account.away_for_long:
        return
    for before, event in pairwise(life.events):
        if event.kind != "lost":
            continue
        attempted = next(
            e
            for e in reversed(life.events)
            if e.kind == "attempted" and e.position < event.position
        )
        machine = account.world.lives[attempted.state["actor"].removeprefix("worker/")]
        if not machine.troubled_at or account.seconds(event.at) < machine.troubled_at[0]:
            account.say(
                f"attempt {event.state['attempt']} of {identity} was lost after {before.kind},"
                f" and its worker {machine.name} was well"
            )


def check_retries(account: Account, life: Life, identity: UUID, seen: Any) -> None:
    """No budget is exceeded, none is cut short, and nobody is tried again too soon."""
    job = account.jobs.get(life.job)
    if job is None:
        return
    retry = job.spec["policies"]["retry"]
    failures = 0
    for number, event in enumerate(life.events):
        match event.kind:
            case "failed" | "lost":
                failures += 1
                _check_delay(account, retry, failures, event, seen)
                if failures > retry["max_attempts"]:
                    account.say(f"{identity} failed {failures} times: more than it may")
            case "dead_lettered":
                before = life.events[number - 1]
                hopeless = before.state.get("kind") in ("argument", "permanent")
                if (
                    event.state["cause"] == "exhausted"
                    and failures < retry["max_attempts"]
                    and not hopeless
                ):
                    account.say(f"{identity} was given up after {failures} failures")
            case "replayed":
                failures = 0
            case _:
                pass


def _check_delay(
    account: Account, retry: dict[str, Any], failures: int, event: Event, seen: Any
) -> None:
    retry_at = event.state.get("retry_at")
    if retry_at is None or event.kind == "lost":
        return
    attempt = event.state["attempt"]
    execution = next((e for e in seen if e.attempt == attempt), None)
    if execution is None or execution.ended is None:
        return
    least = min(retry["cap"], retry["base"] * 2.0 ** (failures - 1))
    if event.state["kind"] == "retryable":
        least = 20.0 * account.world.plan.tempo
    # By the log's clock as far as it was stepped; that only ever adds to it.
    ended = account.world.plan.start + timedelta(seconds=execution.ended)
    if event.state["kind"] == "timeout":
        return
    stood = timedelta(seconds=getattr(execution.process, "stood_s", 0.0))
    if datetime.fromisoformat(retry_at) + stood < ended + timedelta(seconds=least) - SLACK:
        account.say(f"attempt {attempt} of {event.stream} is tried again too soon: {retry_at}")
