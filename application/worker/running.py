"""Running: calls the handler of an attempt, and takes whatever becomes of that.

``async def`` handlers are tasks on the event loop, ``def`` handlers calls in threads, and for those
in processes of their own a task waits here. Whatever a handler raises, a ``SystemExit`` too, is an
outcome of its run and never ends the worker. A timeout counts from the handler's start.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from horolog.application.decision import Decision
from horolog.application.measuring import UNMEASURED, Measures
from horolog.application.tracing import UNTRACED, Spans
from horolog.application.worker.attempt import Attempt
from horolog.application.worker.current import current_run
from horolog.application.worker.finishing import Finishing
from horolog.application.worker.group_commit import GroupCommit
from horolog.application.worker.handlers import AnyHandler, Handlers, is_async
from horolog.application.worker.opening import Opening
from horolog.application.worker.processes import ProcessDied, RunsInProcess, place_of
from horolog.application.worker.settings import WorkerSettings
from horolog.application.worker.threads import HandlerThreads, RunsCalls
from horolog.application.worker.traced_attempts import attempt_span
from horolog.application.worker.transactions import CommitUnknown, Transactions
from horolog.domain.errors import HorologError, InvalidPayload
from horolog.domain.reference import Ref, find_refs, has_refs, replace_refs
from horolog.domain.sealed import is_sealed

log = logging.getLogger("horolog.worker")


class Running:
    """Runs attempts. ``ended`` is called when a handler has really ended and its slots are free."""

    def __init__(
        self,
        handlers: Handlers,
        finishing: Finishing,
        commit: GroupCommit,
        transactions: Transactions,
        opening: Opening,
        *,
        settings: WorkerSettings,
        monotonic: Callable[[], float],
        ended: Callable[[Attempt], None],
        threads: RunsCalls | None = None,
        measures: Measures = UNMEASURED,
        spans: Spans = UNTRACED,
        processes: RunsInProcess | None = None,
    ) -> None:
        self._handlers = handlers
        self._finishing = finishing
        self._commit = commit
        self._transactions = transactions
        self._opening = opening
        self._settings = settings
        self._monotonic = monotonic
        self._ended = ended
        self._measures = measures
        self._measured = measures is not UNMEASURED
        self._spans = spans
        self._threads = threads or HandlerThreads(settings.threads)
        self._processes = processes
        self._loop = asyncio.get_running_loop()
        self._errands: set[asyncio.Task[None]] = set()

    def start(self, attempt: Attempt) -> None:
        """Begins an attempt that the log has accepted; one that was told to stop while it waited
        for its slots does not begin."""
        attempt.started_at = self._monotonic()
        if attempt.ended_by is not None:
            self._stopped(attempt)
            self._end(attempt)
            return
        # Where nobody listens, what would be said is not reckoned either.
        if self._measured and attempt.ready.attempt == 1 and attempt.ready.kind != "backfill":
            late = (self._commit.now() - attempt.ready.fire_time).total_seconds()
            self._measures.observe(
                "start_lateness_seconds", max(0.0, late), queue=attempt.ready.queue
            )
        if self._spans.tracing:
            attempt.span = attempt_span(self._spans, attempt)
        if not attempt.handler.process:
            self._set_timer(attempt)
        prepares = self._needs_preparation(attempt)
        if prepares or attempt.handler.is_async or attempt.handler.process:
            run = self._run(attempt, prepares)
            attempt.task = self._loop.create_task(run, name=attempt.handler.name)
        else:
            self._call_in_thread(attempt, attempt.ready.payload)

    def give_up(self, attempt: Attempt) -> None:
        """Decides a run that was told to stop and did not: without its handler."""
        if attempt.decided:
            return
        log.warning(
            "the handler %r was cancelled (%s) and does not stop: its run is decided without it",
            attempt.handler.name,
            attempt.ended_by,
        )
        self._stopped(attempt)

    def close(self) -> None:
        self._threads.close()

    async def _run(self, attempt: Attempt, prepares: bool) -> None:
        attempt.cancellable = True
        if attempt.ended_by is not None:
            self._stopped(attempt)
            self._end(attempt)
            return
        handler, payload = attempt.handler, attempt.ready.payload
        current_run.set(attempt.run)
        attempt.span.attach()  # of this task's own context
        try:
            if prepares:
                if is_sealed(payload) and not await self._opened(attempt):
                    self._end(attempt)
                    return
                payload = await self._resolved(attempt)
                if await self._decided_by_reconcile(attempt, payload):
                    self._end(attempt)
                    return
                if not handler.is_async and not handler.process:
                    attempt.task = None
                    self._call_in_thread(attempt, payload)
                    return
                if handler.wants_last_result:
                    await self._in_thread(lambda: attempt.run.last_result)
            if handler.process:
                await self._run_in_process(attempt, payload)
                self._end(attempt)
                return
            arguments = handler.arguments.accept(payload)
            if handler.transactional:
                await self._run_in_transaction(attempt, arguments)
            elif (instead := self._withdrawn(attempt)) is not None:
                instead()
            else:
                self._finishing.returned(attempt, await handler.function(attempt.run, **arguments))
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            self._raised(attempt, error)
        self._end(attempt)

    async def _run_in_process(self, attempt: Attempt, payload: dict[str, Any]) -> None:
        """Has a process run the handler; the time that the process takes to start is not its."""
        assert self._processes is not None, "a worker without processes has no such handler"
        handler, ready = attempt.handler, attempt.ready
        order = {
            "name": handler.name,
            "ready": ready.model_dump(mode="json", exclude={"payload"}),
            "payload": _sendable(handler, payload),
        }
        if handler.wants_last_result:
            order["last_result"] = attempt.run.last_result
        place = place_of(handler.function, handler.name)
        if (instead := self._withdrawn(attempt)) is not None:
            instead()
            return
        try:
            said = await self._processes.run(place, order, lambda: self._begin_clock(attempt))
        except ProcessDied as error:
            self._finishing.failed(attempt, "crashed", str(error))
            return
        if "result" in said:
            self._finishing.returned(attempt, said["result"])
        elif "snooze_s" in said:
            self._finishing.snoozed(attempt, said["snooze_s"])
        else:
            self._finishing.failed(attempt, said["kind"], said["error"], said.get("after_s"))

    def _begin_clock(self, attempt: Attempt) -> None:
        attempt.started_at = self._monotonic()
        self._set_timer(attempt)

    def _set_timer(self, attempt: Attempt) -> None:
        if attempt.ready.timeout is not None:
            attempt.timer = self._loop.call_later(attempt.ready.timeout, self._expire, attempt)

    async def _run_in_transaction(self, attempt: Attempt, arguments: dict[str, Any]) -> None:
        async with self._transactions.begin_async() as transaction:
            if (instead := self._withdrawn(attempt)) is not None:
                instead()
                return
            attempt.run.lend(transaction.connection)
            value = await attempt.handler.function(attempt.run, **arguments)
            decision = self._finishing.success_decision(attempt, value)
            if not attempt.take_decision():
                return
            # From here on nothing cancels this task: the commit decides.
            try:
                verdict = await transaction.succeed(decision)
            except CommitUnknown as error:
                await self._find_out(attempt, decision, error)
                return
            except BaseException:
                attempt.return_decision()
                raise
        self._finishing.settle(attempt, verdict)

    def _call_in_thread(self, attempt: Attempt, payload: dict[str, Any]) -> None:
        def call() -> None:
            act = self._called(attempt, payload)
            # The loop is closed where the process stopped waiting for this handler.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._after_thread, attempt, act)

        self._threads.submit(call)

    def _called(self, attempt: Attempt, payload: dict[str, Any]) -> Callable[[], None]:
        """Calls a ``def`` handler, in its thread; what is to be done about it on the loop."""
        current_run.set(attempt.run)
        detach = attempt.span.attach()
        try:
            arguments = attempt.handler.arguments.accept(payload)
            if attempt.handler.transactional:
                return self._called_in_transaction(attempt, arguments)
            if (instead := self._withdrawn(attempt)) is not None:
                return instead
            value = attempt.handler.function(attempt.run, **arguments)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
            return partial(self._raised, attempt, error)
        finally:
            detach()
            current_run.set(None)
        return partial(self._finishing.returned, attempt, value)

    def _called_in_transaction(
        self, attempt: Attempt, arguments: dict[str, Any]
    ) -> Callable[[], None]:
        with self._transactions.begin() as transaction:
            if (instead := self._withdrawn(attempt)) is not None:
                return instead
            attempt.run.lend(transaction.connection)
            value = attempt.handler.function(attempt.run, **arguments)
            decision = self._finishing.success_decision(attempt, value)
            if not attempt.take_decision():
                return _nothing
            try:
                verdict = transaction.succeed(decision)
            except CommitUnknown as error:
                return partial(self._look_up, attempt, decision, error)
            except BaseException:
                attempt.return_decision()
                raise
        return partial(self._finishing.settle, attempt, verdict)

    def _after_thread(self, attempt: Attempt, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - a result's own code may run, and raise
            self._raised(attempt, error)
        self._end(attempt)

    def _look_up(self, attempt: Attempt, decision: Decision, error: CommitUnknown) -> None:
        task = self._loop.create_task(self._find_out(attempt, decision, error))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _find_out(self, attempt: Attempt, decision: Decision, error: CommitUnknown) -> None:
        """Whether a commit happened whose answer was lost: only the log knows."""
        if await self._commit.holds(decision):
            self._finishing.settle(attempt, "accepted")
        else:
            attempt.return_decision()
            self._finishing.failed(attempt, "transport", f"the commit did not happen: {error}")

    def _end(self, attempt: Attempt) -> None:
        if attempt.timer is not None:
            attempt.timer.cancel()
        self._ended(attempt)

    def _withdrawn(self, attempt: Attempt) -> Callable[[], None] | None:
        """What becomes of an attempt whose handler must not be called any more, if so. Asked at the
        last moment before the handler: waiting for a thread, a connection or a payload takes time,
        and a thread that was told to stop meanwhile is not interrupted."""
        if attempt.ended_by is not None:
            return partial(self._stopped, attempt)
        if self._is_late(attempt):
            return partial(self._give_back, attempt)
        return None

    def _is_late(self, attempt: Attempt) -> bool:
        """Whether the attempt may have been given up by now, and be another worker's: this process
        stood still since it was accepted, or the log's answer took its time, or a heartbeat has
        heard so. One that stands still after this was asked runs beside its successor."""
        return self._monotonic() >= attempt.trusted_until

    def _give_back(self, attempt: Attempt) -> None:
        """Where it was given up, the log refuses this too, and nothing has happened."""
        reason = "its lease was nearly over before it could begin"
        self._finishing.snoozed(attempt, 0.0, reason=reason)

    # What a run needs before its handler is called: seldom, so kept out of the ordinary way.

    def _needs_preparation(self, attempt: Attempt) -> bool:
        handler, ready = attempt.handler, attempt.ready
        if ready.lost and (handler.reconciler is not None or ready.on_unknown == "dead_letter"):
            return True
        if handler.wants_last_result and (handler.is_async or handler.process):
            return True
        payload = ready.payload
        return bool(payload) and (is_sealed(payload) or has_refs(payload))

    async def _opened(self, attempt: Attempt) -> bool:
        """Opens the payload; ``False`` where that could not be, and its run was decided so."""
        try:
            opened = await self._in_thread(partial(self._opening.open, attempt))
        except HorologError as error:
            if not self._opening.failed(attempt, error):
                raise
            return False
        if not opened:
            self._finishing.erased(attempt)
        return opened

    async def _resolved(self, attempt: Attempt) -> dict[str, Any]:
        """The payload, opened, with its references replaced by what they name now."""
        keeps = attempt.handler.arguments.keeps_refs
        payload = attempt.ready.payload if attempt.opened is None else attempt.opened.value
        found: dict[Ref, Any] = {}
        for name, value in payload.items():
            if name in keeps:
                continue
            for ref in find_refs(value):
                if ref not in found:
                    found[ref] = await self._resolve(ref)
        return {
            name: replace_refs(value, {} if name in keeps else found)
            for name, value in payload.items()
        }

    async def _resolve(self, ref: Ref) -> Any:
        resolver = self._handlers.resolver(ref)
        if resolver is None:
            raise InvalidPayload(
                f"nothing here resolves {ref!r}: register a resolver with"
                f" @worker.resolves({ref.path.partition('/')[0]!r}), or annotate it as Ref"
            )
        return await self._awaited(resolver, ref.path)

    async def _decided_by_reconcile(self, attempt: Attempt, payload: dict[str, Any]) -> bool:
        """After a lost attempt: asks whether it took effect. ``True`` where that ends the run."""
        handler, ready = attempt.handler, attempt.ready
        if not ready.lost:
            return False
        happened = None
        if handler.reconciler is not None:
            arguments = handler.arguments.accept(payload)
            happened = await self._awaited(handler.reconciler, attempt.run, **arguments)
        if happened:
            self._finishing.reconciled(attempt)
            return True
        if happened is None and ready.on_unknown == "dead_letter":
            self._finishing.unknown_outcome(attempt)
            return True
        return False

    async def _awaited(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a user's function: on the loop if it is async, in a thread if not."""
        if is_async(function):
            return await function(*args, **kwargs)
        return await self._in_thread(partial(function, *args, **kwargs))

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()

        def call() -> None:
            try:
                settle = partial(_set_result, future, function())
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits it
                settle = partial(_set_exception, future, error)
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(settle)

        self._threads.submit(call)
        return await future

    # How runs end that were told to.

    def _expire(self, attempt: Attempt) -> None:
        """The job's timeout is over. A coroutine is cancelled and has a moment to clean up; a
        thread can only be told, so its run is decided at once, and its slot stays taken."""
        if attempt.decided:
            return
        attempt.stop("timeout")
        if attempt.task is None:
            self._stopped(attempt)
        else:
            grace_s = self._settings.cancel_grace_s
            attempt.timer = self._loop.call_later(grace_s, self.give_up, attempt)

    def _raised(self, attempt: Attempt, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and attempt.ended_by is not None:
            self._stopped(attempt)
            return
        try:
            self._finishing.raised(attempt, error)
        except BaseException as second:  # noqa: BLE001 - an exception's own code runs when it is read
            name, why = type(error).__name__, type(second).__name__
            self._finishing.failed(attempt, "unknown", f"{name}: (it cannot be read: {why})")

    def _stopped(self, attempt: Attempt) -> None:
        match attempt.ended_by:
            case "timeout":
                self._finishing.timed_out(attempt)
            case "taken":
                self._finishing.taken(attempt)
            case "cancelled":
                self._finishing.stopped(attempt)
            case _:
                self._finishing.snoozed(attempt, 0.0, reason="the worker stops")


def _sendable(handler: AnyHandler, payload: dict[str, Any]) -> dict[str, Any]:
    """The payload as JSON, references resolved; ``InvalidPayload`` where one became something
    else."""
    try:
        return to_jsonable_python(payload)
    except PydanticSerializationError as error:
        raise InvalidPayload(
            f"the handler {handler.name!r} runs in a process of its own, and a reference became"
            f" something that has no JSON form ({error}): annotate it as Ref"
        ) from error


def _nothing() -> None:
    return


def _set_result(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        # A future cannot hold StopIteration; it would be a bug of the handler anyhow.
        held = RuntimeError(str(error)) if isinstance(error, StopIteration) else error
        future.set_exception(held)
