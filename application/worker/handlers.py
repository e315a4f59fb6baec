"""The handlers of a worker: which function does the work of which job, and how it is called.

worker = Worker()

@worker.handles("invoices.bill")
async def bill(run: Run, card: Card, amount: int) -> dict: ...

@bill.reconcile                # after a lost attempt: did it happen? True, False, or None
async def billed(run: Run, card: Card, amount: int) -> bool | None: ...

@worker.resolves("cards")      # Ref("cards/42") becomes a Card, when the run begins
async def card(ref: str) -> Card: ...
"""

import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from types import CodeType
from typing import Any, Generic, ParamSpec, TypeVar

from horolog.application.worker.arguments import Arguments
from horolog.application.worker.classify import Classification
from horolog.application.worker.processes import place_of
from horolog.domain.definition import NAME_PATTERN
from horolog.domain.errors import InvalidSetting
from horolog.domain.failure import FailureKind
from horolog.domain.reference import Ref

P = ParamSpec("P")
R = TypeVar("R")
Reconciler = TypeVar("Reconciler", bound=Callable[..., "bool | Awaitable[bool | None] | None"])
Resolver = TypeVar("Resolver", bound=Callable[[str], Any])


class Handler(Generic[P, R]):
    """A registered function. Calling it calls the function, as if it had not been registered."""

    def __init__(
        self,
        name: str,
        function: Callable[P, R],
        *,
        transactional: bool = False,
        concurrency: int | None = None,
        process: bool = False,
        classification: Classification | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.function = function
        self.transactional = transactional
        self.concurrency = concurrency
        self.process = process
        self.classification = classification or Classification()
        self.is_async = is_async(function)
        self.arguments = Arguments(function, name)
        self.reconciler: Callable[..., Any] | None = None
        self.wants_last_result = _mentions(_code(function), "last_result")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def reconcile(self, function: Reconciler) -> Reconciler:
        """Registers who knows whether a lost attempt's effect happened.

        It is called like the handler, before it, when the attempt before was lost. ``True``
        records success without running; ``False`` runs; ``None`` (nobody can say) follows the
        job's ``on_unknown`` policy. What it raises is a failure of this attempt.
        """
        if self.reconciler is not None:
            raise InvalidSetting(f"the handler {self.name!r} has a reconcile already")
        Arguments(function, f"{self.name} (reconcile)")
        self.reconciler = function
        return function

    @property
    def is_limited(self) -> bool:
        """Whether its runs need more than one of the worker's own slots."""
        return self.transactional or self.process or self.concurrency is not None

    @property
    def code(self) -> CodeType | None:
        """The code that runs while the handler does: how a blocked loop finds out whose it is."""
        return _code(self.function)

    def __repr__(self) -> str:
        return f"<Handler {self.name}>"


AnyHandler = Handler[..., Any]


class Handlers:
    """What a worker can do: handlers by name, resolvers by prefix, what exceptions mean."""

    def __init__(self) -> None:
        self.by_name: dict[str, AnyHandler] = {}
        self.classification = Classification()
        self._resolvers: dict[str, Callable[[str], Any]] = {}

    def handles(
        self,
        name: str,
        *,
        transactional: bool = False,
        concurrency: int | None = None,
        process: bool = False,
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Registers the function that does the work of the jobs called ``name``.

        ``async def`` functions run on the event loop, ``def`` functions in threads. The first
        parameter is the :class:`Run`; the payload's keys follow as keywords and are checked against
        the annotations. ``transactional`` gives ``run.connection``, in whose transaction the
        success is recorded. ``concurrency`` is how many runs of it one worker has at a time.
        ``process`` has a ``def`` function run in a process of its own, which a timeout or a
        cancellation kills, and whose death is a failure of the run (``crashed``) and no more.
        Raises ``InvalidSetting`` for a name that is taken or that no job can have.
        """
        if not re.match(NAME_PATTERN, name):
            raise InvalidSetting(
                f"no job can be called {name!r}: a name has letters, digits and _ . : / -,"
                " begins with a letter, a digit or _, and has at most 128 characters"
            )
        if name in self.by_name:
            raise InvalidSetting(f"the name {name!r} has a handler already: {self.by_name[name]!r}")
        if concurrency is not None and concurrency < 1:
            raise InvalidSetting(f"concurrency={concurrency!r} of {name!r}: it is at least 1")

        def register(function: Callable[P, R]) -> Handler[P, R]:
            if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
                raise InvalidSetting(
                    f"the handler {name!r} is a generator: it returns its result, and yields none"
                )
            # One function may do the work of several names.
            inner = function.function if isinstance(function, Handler) else function
            if process:
                _check_process(name, inner, transactional=transactional)
            handler = Handler(
                name,
                inner,
                transactional=transactional,
                concurrency=concurrency,
                process=process,
                classification=self.classification,
            )
            self.by_name[name] = handler
            return handler

        return register

    def resolves(self, prefix: str) -> Callable[[Resolver], Resolver]:
        """Registers what turns references under ``prefix`` into what they name, at run time.

        It is called with the whole reference (``"cards/42"``), at every attempt; ``async def`` on
        the loop, ``def`` in a thread. What it raises is a failure of the attempt: ``LookupError``
        is argument-shaped, a time-out transport-shaped. The longest prefix wins.
        """
        prefix = prefix.rstrip("/")
        if not prefix or prefix in self._resolvers:
            problem = "has a resolver already" if prefix else "is empty"
            raise InvalidSetting(f"the prefix {prefix!r} {problem}")

        def register(function: Resolver) -> Resolver:
            self._resolvers[prefix] = function
            return function

        return register

    def classifies(self, error: type[BaseException], kind: FailureKind) -> None:
        """States what kind of failure it is when a handler raises ``error`` or a subclass of it.

        It goes before what Horolog knows by itself; the most specific class wins.
        """
        self.classification.add(error, kind)

    def resolver(self, ref: Ref) -> Callable[[str], Any] | None:
        """The resolver of a reference."""
        for prefix in ref.prefixes():
            if (found := self._resolvers.get(prefix)) is not None:
                return found
        return None

    def prepare(self) -> None:
        """Builds everything that can be built before the first run; ``InvalidSetting`` says what
        cannot."""
        for handler in self.by_name.values():
            handler.arguments.prepare()


def _check_process(name: str, function: Callable[..., Any], *, transactional: bool) -> None:
    """Refuses what another process cannot do for the worker."""
    if is_async(function):
        raise InvalidSetting(
            f"the handler {name!r} is an `async def`: in a process of its own it is a `def`"
        )
    if transactional:
        raise InvalidSetting(
            f"the handler {name!r} cannot be transactional in a process of its own: the"
            " transaction is the worker's"
        )
    place_of(function, name)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or (
        not inspect.isroutine(function)
        and inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
    )


def _code(function: Callable[..., Any]) -> CodeType | None:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _mentions(code: CodeType | None, name: str) -> bool:
    """Whether code, or a function within it, uses an attribute of this name."""
    if code is None:
        return False
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return name in code.co_names or any(_mentions(const, name) for const in inner)
