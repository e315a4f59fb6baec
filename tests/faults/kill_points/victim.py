"""A scanner, a worker or a client that kills itself at a named point, once for each handler.

python victim.py scanner|worker|client COMMAND ID, with the rest in the environment; see run.py.

The points lie around the calls of adapters: the code of the product has no hooks for this. A flag
file says that the point has killed for a handler; it is made just before the process dies.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from horolog import Permanent, Run, Scheduler, Snooze, Worker
from horolog.application.ready import decode
from horolog.application.scanner.settings import ScannerSettings
from horolog.infrastructure.nats.ready_queue import NatsReadyQueue
from horolog.infrastructure.nats.ready_source import NatsMessage
from horolog.infrastructure.postgres import handler_transactions
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.interface.processes.scanner import run_scanner
from horolog.interface.processes.signals import stop_on_signals

URL, NAMESPACE = os.environ["HOROLOG_DATABASE_URL"], os.environ["HOROLOG_NAMESPACE"]
POINTS = os.environ["KILL_POINTS"].split(",")
FLAGS = Path(os.environ["KILL_FLAGS"])
RUNS = FLAGS / "runs"
"""A file for each occurrence, which holds its handler's name; "current" is the last one's."""

_OUTCOMES = {"succeeded", "failed"}
_BESIDE = {"partition", "deadline", "alert"}
_OF_JOBS = {"fires_skipped", "completed"}
WHERE = "in the client; " if sys.argv[1] == "client" else ""


def at(point: str, occurrences: Iterable[object]) -> None:
    """The point is reached for these occurrences: the end, if it is the first time for one."""
    if point not in POINTS:
        return
    for occurrence in occurrences:
        try:
            name = (RUNS / str(occurrence)).read_text()
            (FLAGS / f"{point} {name}").touch(exist_ok=False)
        except (FileNotFoundError, FileExistsError):
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def kinds(decisions: Any) -> dict[str, list[object]]:
    """The occurrences of decisions, by what is to be appended to them."""
    found: dict[str, list[object]] = {}
    for decision in decisions:
        for new in decision.events:
            about, kind, _ = new.event.topic.split(".")
            if about == "occurrence":
                found.setdefault(kind, []).append(new.stream)
                if kind in _OUTCOMES:
                    found.setdefault("outcome", []).append(new.stream)
            elif about in _BESIDE or kind in _OF_JOBS:
                found.setdefault(kind, []).append("current")
    return found


def watch_appends() -> None:
    append = PostgresLog.append

    def watched(self: PostgresLog, decisions: Any, fences: Any = None) -> Any:
        about = kinds(decisions)
        for kind, streams in about.items():
            at(f"{WHERE}before {kind} is appended", streams)
        appended = append(self, decisions, fences)
        for kind, streams in about.items():
            at(f"{WHERE}after {kind} is appended", streams)
        return appended

    PostgresLog.append = watched


def watch_publishing() -> None:
    publish = NatsReadyQueue.publish

    async def watched(self: NatsReadyQueue, messages: Any) -> Any:
        runs = [run.occurrence for message in messages for run in message.runs]
        at("before it is published", runs)
        receipts = await publish(self, messages)
        at("after it is published", runs)
        return receipts

    NatsReadyQueue.publish = watched


def watch_commits() -> None:
    """A transactional handler's outcome is appended by its own commit."""
    succeed = handler_transactions._AsyncTransaction.succeed  # pyright: ignore[reportPrivateUsage]

    async def watched(self: Any, decision: Any) -> Any:
        streams = [new.stream for new in decision.events]
        at("before outcome is appended", streams)
        verdict = await succeed(self, decision)
        at("after outcome is appended", streams)
        return verdict

    handler_transactions._AsyncTransaction.succeed = watched  # pyright: ignore[reportPrivateUsage]


def watch_acknowledging() -> None:
    tell = NatsMessage.tell

    def watched(self: NatsMessage, word: Any) -> None:
        runs = [run.occurrence for run in decode(self.data)]
        if word.kind == "done":
            at("before it is acknowledged", runs)
        tell(self, word)
        if word.kind == "done":
            # It is on its way by then.
            asyncio.get_running_loop().call_later(0.2, at, "after it is acknowledged", runs)

    NatsMessage.tell = watched


worker = Worker(
    lease_s=1.5, heartbeat_s=0.5, ack_wait_s=1.0, give_back_delay_s=0.1, retry_append_s=0.1
)


def statement(text: str) -> sql.Composed:
    return sql.SQL(text).format(effects=sql.Identifier(NAMESPACE, "effects"))  # pyright: ignore[reportArgumentType]


async def execute(text: str, key: str) -> int:
    """Executes it in a transaction of its own, as a downstream would; how many rows it met."""
    async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as connection:
        return (await connection.execute(statement(text), (key,))).rowcount


INSERT = "INSERT INTO {effects} (key) VALUES (%s)"
INSERT_ONCE = (
    "INSERT INTO {effects} (key) SELECT key FROM (VALUES (%s)) new (key)"
    " WHERE NOT EXISTS (SELECT FROM {effects} e WHERE e.key = new.key)"
)
FIND = "SELECT FROM {effects} WHERE key = %s"


async def first_try(run: Run, first: str) -> None:
    """What the first attempt does before its effect; later ones go on."""
    if run.attempt > 1:
        return
    if first == "fails":
        raise ConnectionError(first)
    if first == "snoozes":
        raise Snooze(0)
    if first == "dies":
        raise Permanent(first)
    if first == "waits":
        await asyncio.sleep(600)


async def take_effect(run: Run, text: str) -> None:
    at("in the handler; before its effect", [run.occurrence_id])
    await execute(text, run.key)
    at("in the handler; after its effect", [run.occurrence_id])


@worker.handles("plain")
async def plain(run: Run, first: str = "") -> None:
    """Takes effect as often as it is called."""
    await first_try(run, first)
    await take_effect(run, INSERT)


@worker.handles("idempotent")
async def idempotent(run: Run, first: str = "") -> None:
    """Hands its key to a downstream that takes effect once for each."""
    await first_try(run, first)
    await take_effect(run, INSERT_ONCE)


@worker.handles("reconciled")
async def reconciled(run: Run, first: str = "") -> None:
    """As plain, but the downstream can be asked."""
    await first_try(run, first)
    await take_effect(run, INSERT)


@reconciled.reconcile
async def happened(run: Run, first: str = "") -> bool:
    return await execute(FIND, run.key) > 0


@worker.handles("transactional", transactional=True)
async def transactional(run: Run, first: str = "") -> None:
    """Takes effect in the transaction of its success."""
    await first_try(run, first)
    at("in the handler; before its effect", [run.occurrence_id])
    await run.connection.execute(statement(INSERT), (run.key,))
    at("in the handler; after its effect", [run.occurrence_id])


SCANNING = ScannerSettings(
    lease_s=1.5, settle_s=0.1, sweep_s=0.5, look_interval_s=0.2, claim_window_s=1.5,
    watch_interval_s=0.2, alert_interval_s=0.2,
)  # fmt: skip


def main() -> None:
    watch_appends()
    watch_publishing()
    watch_commits()
    watch_acknowledging()
    if sys.argv[1] == "worker":
        worker.run()
    elif sys.argv[1] == "scanner":
        asyncio.run(scan())
    else:
        command, identity = sys.argv[2:]
        with Scheduler(URL, namespace=NAMESPACE) as scheduler:
            if command == "change job":
                scheduler.update(identity, labels={"changed": "yes"})
            elif command == "cancel job":
                scheduler.cancel(identity)
            elif command == "replay":
                try_again(scheduler, identity)
            else:
                scheduler.cancel_occurrence(identity)


def try_again(scheduler: Scheduler, key: str) -> None:
    """Replays it, unless the client before, which died, did that."""
    if scheduler.occurrence(key).state == "dead":
        scheduler.replay(key, reason="its cause is mended")


async def scan() -> None:
    with stop_on_signals() as stop:
        await run_scanner(URL, os.environ["HOROLOG_NATS_URL"], NAMESPACE, SCANNING, stop)


if __name__ == "__main__":
    main()
