"""The demo from its start to its judgement.

A scanner and a worker run as processes of their own; this one registers jobs, acts on them, follows
the log and prints what comes. At the end it waits until every run has ended, stops the processes
gracefully, folds the whole log once more from its first event, and lets `verify` check it.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.verify import Report
from horolog.domain.errors import HorologError
from horolog.interface.demo.scenario import CANCELLED, POISON, Act, Scenario
from horolog.interface.demo.tally import Tally
from horolog.interface.demo.views import View
from horolog.interface.processes.children import Child, stop_all
from horolog.interface.scheduler import Scheduler
from horolog.interface.settings import Settings

SETTLE_S = 20.0
"""How long the last runs may take after the time is over."""

STOP_S = 15.0


class DemoFailed(HorologError):
    """The demo cannot be shown here; the message says why."""


@dataclass(frozen=True)
class Told:
    """What the log says at the end, and what there is to hold against it."""

    tally: Tally
    complaints: list[str]


def run_demo(
    settings: Settings, scheduler: Scheduler, seconds: float, folder: Path, view: View, tally: Tally
) -> Told:
    """Runs the demo on a migrated, empty namespace. ``folder`` takes the processes' output."""
    view.step("starting a scanner and a worker")
    children = [
        Child.start("scanner", ["scanner"], settings, output=folder / "scanner.log"),
        Child.start(
            "worker", ["worker", "horolog.interface.samples:worker"], settings,
            output=folder / "worker.log",
        ),
    ]  # fmt: skip
    try:
        with followed(scheduler) as arrived:
            _play(scheduler, seconds, children, view, _watch(arrived, view, tally))
    finally:
        stop_all(children, STOP_S)
    account = whole_log(scheduler)
    return Told(account, complaints(account))


def _play(
    scheduler: Scheduler,
    seconds: float,
    children: list[Child],
    view: View,
    watch: Callable[[float], Tally],
) -> None:
    """Acts at the acts' times and watches in between; then until every run has ended."""
    start = monotonic()

    def until(moment_s: float, is_over: Callable[[Tally], bool] = lambda _: False) -> None:
        while (elapsed := monotonic() - start) < moment_s:
            view.tick(elapsed)
            if is_over(watch(min(0.1, moment_s - elapsed))):
                return
            for child in children:
                child.check()

    for act in Scenario(scheduler, seconds).acts():
        until(act.at)
        _perform(act, view)
    until(seconds + SETTLE_S, lambda tally: not tally.unfinished and not complaints(tally))
    view.tick(monotonic() - start)


def _perform(act: Act, view: View) -> None:
    view.step(act.what)
    act.do()


@contextmanager
def followed(scheduler: Scheduler) -> Generator["SimpleQueue[LoggedEvent | HorologError]"]:
    """The log from its beginning, read by a thread of its own, as long as the body lasts."""
    arrived: SimpleQueue[LoggedEvent | HorologError] = SimpleQueue()
    stopping = Event()
    follower = scheduler.follower(0)

    def follow() -> None:
        try:
            while not stopping.is_set():
                for recorded in follower.page():
                    arrived.put(LoggedEvent.of(recorded))
        except HorologError as error:
            arrived.put(error)
        finally:
            follower.close()

    thread = Thread(target=follow, name="follower", daemon=True)
    thread.start()
    try:
        yield arrived
    finally:
        stopping.set()
        thread.join(5)


def _watch(
    arrived: "SimpleQueue[LoggedEvent | HorologError]", view: View, tally: Tally
) -> Callable[[float], Tally]:
    def watch(timeout_s: float) -> Tally:
        """Shows what has arrived; waits up to ``timeout_s`` for the first."""
        try:
            logged = arrived.get(timeout=timeout_s)
            while True:
                if isinstance(logged, HorologError):
                    raise logged
                tally.add(logged)
                view.event(logged)
                logged = arrived.get_nowait()
        except Empty:
            return tally

    return watch


def refuse_used(scheduler: Scheduler, namespace: str) -> None:
    """Raises ``DemoFailed`` for a namespace that holds something: the account would mix them up."""
    if scheduler.log(limit=1):
        raise DemoFailed(
            f"namespace {namespace!r} holds events already: the demo needs one of its own"
        )


def whole_log(scheduler: Scheduler) -> Tally:
    """The account of the whole log, read page by page from its first event."""
    tally = Tally()
    position = 0
    while page := scheduler.log(after=position):
        tally.add_all(page)
        position = page[-1].position
    return tally


def summed_up(told: Told, report: Report) -> dict[str, int]:
    """The numbers of the demo: occurrences by what became of them, jobs that were cancelled,
    ``retried`` occurrences that took more than one attempt, and what `verify` found."""
    accounts = told.tally.accounts()
    return {
        "jobs": len(accounts),
        "occurrences": sum(account.occurrences for account in accounts),
        "succeeded": sum(account.succeeded for account in accounts),
        "retried": sum(account.retried for account in accounts),
        "dead_letters": sum(account.dead for account in accounts),
        "cancelled": sum(account.job.status == "cancelled" for account in accounts),
        "attempts": sum(account.attempts for account in accounts),
        "unfinished": told.tally.unfinished,
        "events": told.tally.events,
        "violations": report.violation_count,
    }


def complaints(tally: Tally) -> list[str]:
    """What the demo promised and the log does not hold; empty when all is well."""
    accounts = {account.label: account for account in tally.accounts()}
    found: list[str] = []
    if (poison := accounts.get(POISON)) is None or poison.dead != 1:
        found.append("the poison job was not dead-lettered")
    if (cancelled := accounts.get(CANCELLED)) is None or cancelled.attempts:
        found.append("the cancelled job ran")
    found += [
        f"the {key} job never succeeded"
        for key in ("one-off", "interval", "cron", "flaky", "triggered")
        if key not in accounts or not accounts[key].succeeded
    ]
    if "flaky" in accounts and not accounts["flaky"].retried:
        found.append("the flaky job was not retried")
    if tally.unfinished:
        found.append(f"{tally.unfinished} runs have not ended")
    return found
