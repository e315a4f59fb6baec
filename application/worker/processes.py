"""Handlers in processes of their own: for work that keeps a processor busy, and for what has to be
killable.

    worker ──order (JSON)──▶ process: imports the handler's module ──loaded──▶ calls the handler
           ◀──answer (JSON)── result, or what kind of failure it was

Nothing is pickled: what goes over is what could stand in the log. A process is killed, with all
that it started, when its run is told to stop; one that dies by itself is a failure of its run.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from horolog.domain.errors import InvalidSetting

MAIN_ELSEWHERE = "__horolog_main__"
"""What a script is called when it is loaded by another process, so that it does not begin anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where another process finds a function: a module's name, or a script's path, and a name."""

    module: str | None
    path: str | None
    qualname: str


class ProcessDied(Exception):
    """The process ended while it had a run; the message says how."""


class RunsInProcess(Protocol):
    """Processes for handlers, kept for the next run.

    Cancelling a call kills its process. Errors: ``ProcessDied``.
    """

    async def run(
        self, place: Place, order: dict[str, Any], begun: Callable[[], None]
    ) -> dict[str, Any]:
        """The answer to an order; ``begun`` is called when the handler is about to be."""
        ...


def place_of(function: Callable[..., Any], name: str) -> Place:
    """Where the function is found. ``InvalidSetting`` for one that only this process has."""
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", "")
    if module is None or not qualname or "<" in qualname:
        raise InvalidSetting(
            f"the handler {name!r} is to run in a process of its own, which cannot find"
            f" {qualname or function!r}: define it at the top of a module"
        )
    if module != "__main__":
        return Place(module, None, qualname)
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    if spec is None and path is None:
        raise InvalidSetting(
            f"the handler {name!r} is to run in a process of its own, which cannot find it:"
            " define it in a file"
        )
    return Place(None, path, qualname) if spec is None else Place(spec.name, None, qualname)
