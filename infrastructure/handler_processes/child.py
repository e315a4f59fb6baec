"""The program of a handler's process: takes orders, calls handlers, answers.

python -m horolog.infrastructure.handler_processes.child FD

It ends when its worker has gone, whatever its handler does just then: a thread of its own waits for
that.
"""

import json
import os
import runpy
import socket
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

from horolog.application.ready import ReadyRun
from horolog.application.worker.finishing import read_error
from horolog.application.worker.handlers import AnyHandler, Handler, Handlers
from horolog.application.worker.processes import MAIN_ELSEWHERE
from horolog.application.worker.results import storable_result
from horolog.application.worker.run import Run
from horolog.infrastructure.handler_processes.framing import LENGTH, framed


class _Lifeline:
    """As :class:`Lifeline` promises: the worker keeps the lease, and has read the last result."""

    def __init__(self, last_result: Any) -> None:
        self._last_result = last_result

    def extend(self, run: Run) -> None:
        del run

    def extend_from_loop(self, run: Run) -> None:
        del run

    def last_result(self, run: Run) -> Any:
        del run
        return self._last_result


def serve(connection: socket.socket) -> None:
    """Takes orders until the worker closes the connection."""
    orders: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive, args=(connection, orders), daemon=True).start()
    while True:
        order = json.loads(orders.get())
        try:
            handler = _found(order["module"], order["path"], order["qualname"], order["name"])
        except BaseException as error:  # noqa: BLE001 - a user's module runs here
            _answer(connection, {"unloadable": f"{type(error).__name__}: {error}"})
            continue
        _answer(connection, {"loaded": True})
        _answer(connection, _called(handler, order))


def _receive(connection: socket.socket, orders: "SimpleQueue[bytes]") -> None:
    with connection.makefile("rb") as stream:
        while len(head := stream.read(LENGTH.size)) == LENGTH.size:
            orders.put(stream.read(LENGTH.unpack(head)[0]))
    os._exit(0)


def _called(handler: AnyHandler, order: dict[str, Any]) -> dict[str, Any]:
    """What becomes of one run, as the worker would have found it."""
    ready = ReadyRun.model_validate(order["ready"])
    run = Run(ready, _Lifeline(order.get("last_result")))
    try:
        arguments = handler.arguments.accept(order["payload"])
        return {"result": storable_result(handler.function(run, **arguments))}
    except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its outcome
        return _failure(handler, error)


def _failure(handler: AnyHandler, error: BaseException) -> dict[str, Any]:
    try:
        said = read_error(error, handler.classification, datetime.now(UTC))
    except BaseException as second:  # noqa: BLE001 - an exception's own code runs when it is read
        name, why = type(error).__name__, type(second).__name__
        return {"kind": "unknown", "error": f"{name}: (it cannot be read: {why})"}
    if said.snooze_s is not None:
        return {"snooze_s": said.snooze_s}
    return {"kind": said.kind, "error": said.text, "after_s": said.after_s}


@cache
def _found(module: str | None, path: str | None, qualname: str, name: str) -> AnyHandler:
    """The handler with what was registered about it; of a bare function, a handler as good."""
    if module is not None:
        names: Mapping[str, Any] = vars(import_module(module))
    else:
        names = runpy.run_path(str(path), run_name=MAIN_ELSEWHERE)
    found: Any = SimpleNamespace(**names)
    for part in qualname.split("."):
        found = getattr(found, part)
    if isinstance(found, Handler):
        return cast("AnyHandler", found)
    for value in names.values():
        if isinstance(value, Handlers) and (known := value.by_name.get(name)) is not None:
            return known
    return Handler(name, found)


def _answer(connection: socket.socket, answer: dict[str, Any]) -> None:
    connection.sendall(framed(answer))


def main() -> None:
    """Serves on the inherited socket; the search path of modules comes first."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    sys.path[:] = json.loads(sys.argv[2])
    serve(connection)


if __name__ == "__main__":
    main()
