"""Handlers called in the caller's own time: as the worker would call them, without a queue.

A run takes as long as the test says, and no time if it says nothing: its handler is called when it
begins, and its outcome is recorded when that time has passed. What the handler is given, returns or
raises is judged by the same code as in the real worker.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from threading import Thread
from typing import Any

from horolog.application.decision import Decision
from horolog.application.log import AppendsToLog
from horolog.application.privacy.ports import OpensSealed
from horolog.application.ready import ReadyRun
from horolog.application.states import ReadsStates
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.attempting import attempt_of
from horolog.application.worker.counting import Counting
from horolog.application.worker.finishing import Finishing, Outcome
from horolog.application.worker.group_commit import Settled
from horolog.application.worker.handlers import AnyHandler, Handler, Handlers, is_async
from horolog.application.worker.held import Held, Word
from horolog.application.worker.lifeline import ReadsResults
from horolog.application.worker.opening import Opening
from horolog.application.worker.run import Run
from horolog.domain.errors import InvalidPayload, NotAllowed
from horolog.domain.reference import find_refs, replace_refs
from horolog.domain.sealed import is_sealed

ACTOR = "worker simulated"
LEASE_S = 30.0

Connects = Callable[[], Any]


class Commit:
    """As :class:`Commits` promises; everything is appended at once, at the time of the test."""

    def __init__(self, log: AppendsToLog, now: Callable[[], datetime]) -> None:
        self._log = log
        self.now_at_most = now

    def submit(self, decision: Decision, settled: Settled) -> None:
        settled(self._log.append([decision]).verdicts[0])


@dataclass(order=True, slots=True)
class _Ending:
    """A run whose outcome is known and is recorded at ``at``."""

    at: datetime
    number: int
    attempt: Attempt = field(compare=False)
    record: Callable[[], None] = field(compare=False)


class Performing:
    """Runs what is claimed. ``handlers`` is a worker; without one every run succeeds.

    ``takes`` is how many seconds the runs of a handler take, by its name.
    """

    def __init__(
        self,
        log: AppendsToLog,
        results: ReadsResults,
        states: ReadsStates,
        handlers: Handlers | None,
        *,
        now: Callable[[], datetime],
        takes: Mapping[str, float],
        connect: Connects | None,
        keyring: OpensSealed,
    ) -> None:
        self._log = log
        self._results = results
        self._handlers = handlers
        self._now = now
        self._takes = takes
        self._connect = connect
        self._loop = HandlerLoop()
        self._endings: list[_Ending] = []
        self._begun = 0
        self._finishing = Finishing(
            Commit(log, now),
            Handlers().classification if handlers is None else handlers.classification,
            Counting(),
            actor=ACTOR,
            monotonic=lambda: now().timestamp(),
            refused=self._look_up,
        )
        self._opening = Opening(keyring, self._finishing)
        self._states = states

    def begin(self, ready: ReadyRun) -> bool:
        """Attempts a claimed run; ``False`` where the claim no longer stands."""
        takes_s = self._takes.get(ready.name, 0.0)
        decision, state = attempt_of(ready, ACTOR, LEASE_S + takes_s)
        if self._log.append([decision]).verdicts != ["accepted"]:
            return False
        handler = self._handler(ready.name)
        held = Held(_Nowhere(), 1, 0.0)
        run = Run(ready, _SimulatedLifeline(self._results))
        attempt = Attempt(ready, handler or _SUCCEEDS, held, state, run)
        attempt.started_at = self._now().timestamp()
        record = self._called(attempt, handler)
        if ready.timeout is not None and takes_s > ready.timeout:
            takes_s = ready.timeout
            record = self._expired(attempt)
        self._begun += 1
        ends_at = self._now() + timedelta(seconds=takes_s)
        heappush(self._endings, _Ending(ends_at, self._begun, attempt, record))
        return True

    def finish(self, now: datetime) -> int:
        """Records the outcomes of the runs that are over by ``now``; how many these were."""
        finished = 0
        while self._endings and self._endings[0].at <= now:
            heappop(self._endings).record()
            finished += 1
        return finished

    def next_end(self) -> datetime | None:
        """When the first of the runs that go on ends."""
        return self._endings[0].at if self._endings else None

    def close(self) -> None:
        self._loop.close()

    def _look_up(self, attempt: Attempt, outcome: Outcome) -> None:
        state = self._states.occurrence(attempt.ready.occurrence)
        self._finishing.decide_again(attempt, outcome, state)

    def _handler(self, name: str) -> AnyHandler | None:
        if self._handlers is None:
            return _SUCCEEDS
        return self._handlers.by_name.get(name)

    def _expired(self, attempt: Attempt) -> Callable[[], None]:
        return lambda: self._finishing.timed_out(attempt)

    def _called(self, attempt: Attempt, handler: AnyHandler | None) -> Callable[[], None]:
        """Calls the handler now; what is recorded when its run ends."""
        if handler is None:
            name = attempt.ready.name
            error = f"the worker of this simulation has no handler {name!r}"
            return lambda: self._finishing.failed(attempt, "argument", error)
        if handler.transactional:
            if self._connect is None:
                raise NotAllowed(
                    f"the handler {handler.name!r} is transactional: give the simulation"
                    " connect=, which returns what run.connection shall be"
                )
            attempt.run.lend(self._connect())
        try:
            if is_sealed(attempt.ready.payload) and not self._opening.open(attempt):
                return lambda: self._finishing.erased(attempt)
            payload = self._resolved(attempt, handler)
            arguments = handler.arguments.accept(payload)
            if attempt.ready.lost and (ended := self._reconciled(attempt, handler, arguments)):
                return ended
            value = self._result(handler.function, attempt.run, **arguments)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            raised = error
            return lambda: self._finishing.raised(attempt, raised)
        return lambda: self._finishing.returned(attempt, value)

    def _reconciled(
        self, attempt: Attempt, handler: AnyHandler, arguments: dict[str, Any]
    ) -> Callable[[], None] | None:
        """After a lost attempt: asks whether it took effect; ``None`` where the handler is to
        run."""
        happened = None
        if handler.reconciler is not None:
            happened = self._result(handler.reconciler, attempt.run, **arguments)
        if happened:
            return lambda: self._finishing.reconciled(attempt)
        if happened is None and attempt.ready.on_unknown == "dead_letter":
            return lambda: self._finishing.unknown_outcome(attempt)
        return None

    def _resolved(self, attempt: Attempt, handler: AnyHandler) -> dict[str, Any]:
        payload = attempt.ready.payload if attempt.opened is None else attempt.opened.value
        keeps = handler.arguments.keeps_refs
        found: dict[Any, Any] = {}
        for name, value in payload.items():
            for ref in find_refs(value) if name not in keeps else ():
                assert self._handlers is not None
                resolver = self._handlers.resolver(ref)
                if resolver is None:
                    raise InvalidPayload(f"nothing in this simulation resolves {ref!r}")
                found[ref] = self._result(resolver, ref.path)
        return {
            name: replace_refs(value, {} if name in keeps else found)
            for name, value in payload.items()
        }

    def _result(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        called = function(*args, **kwargs)
        return self._loop.run(called) if is_async(function) else called


class HandlerLoop:
    """An event loop in a thread of its own, so that a test may have a running one itself."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The result of the coroutine, waited for in real time."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(target=self._loop.run_forever, name="simulated", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()


class _Nowhere:
    """A message that came from no queue."""

    data = b""
    age_s = 0.0
    traceparent: str | None = None

    def tell(self, word: Word) -> None:
        del word


class _SimulatedLifeline:
    """As :class:`Lifeline` promises: attempts of a simulation are never taken away."""

    def __init__(self, results: ReadsResults) -> None:
        self._results = results

    def extend(self, run: Run) -> None:
        del run

    def extend_from_loop(self, run: Run) -> None:
        del run

    def last_result(self, run: Run) -> Any:
        return self._results.last_result(run.job_id, run.occurrence_id)


def _succeed(run: Run, **payload: Any) -> None:
    del run, payload


_SUCCEEDS: AnyHandler = Handler("succeeds", _succeed)
