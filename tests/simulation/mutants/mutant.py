"""One way to break the code that is under the simulation: a patch that is undone afterwards.

It leaves out one thing that somebody might leave out: a check, an order of two steps, a part of a
key.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

Break = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Mutant:
    """``breaks`` enters its patches into a stack. ``focus`` is the trouble that may show it."""

    name: str
    breaks: Break
    focus: str = "everything"

    @contextmanager
    def applied(self) -> Generator[None]:
        with ExitStack() as stack:
            self.breaks(stack)
            yield


class Mutants(list[Mutant]):
    """Those of one part of the system."""

    def mutant(self, name: str, focus: str = "everything") -> Callable[[Break], Break]:
        """Adds what it decorates."""

        def register(breaks: Break) -> Break:
            self.append(Mutant(name, breaks, focus))
            return breaks

        return register


def everywhere(stack: ExitStack, function: Any, instead: Any) -> None:
    """Patches a function in every module that has imported it."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("horolog"):
            continue
        for attribute, value in list(vars(module).items()):
            if value is function:
                stack.enter_context(patch.object(module, attribute, instead))


def method(stack: ExitStack, owner: type[Any], name: str, instead: Any) -> None:
    stack.enter_context(patch.object(owner, name, instead))


def gives(value: Any) -> Callable[..., Any]:
    """A function that does nothing, and returns this."""

    def instead(*args: Any, **kwargs: Any) -> Any:
        return value

    return instead
