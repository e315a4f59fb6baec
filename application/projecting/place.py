"""A projection's place in the log, as the runner calls it."""

from contextlib import AbstractContextManager
from typing import Any, Protocol


class Overtaken(Exception):
    """The place had been moved there already: another runner is, or this one was, faster."""


class KeepsPlace(Protocol):
    """One projection's lock, place and view. For one thread.

    Errors: ``StoreUnavailable``, also where the connection broke in the middle: nothing is then
    known of the last transaction but what :meth:`position` says later, after :meth:`take`.
    """

    def take(self) -> bool:
        """Connects and takes the lock; ``False`` where another runner holds it. It is held until
        :meth:`release`, or until the connection ends."""
        ...

    def release(self) -> None:
        """Gives the lock back and disconnects; harmless where nothing was taken."""
        ...

    def position(self, begin: int) -> int:
        """How far the projection has come; the first time it stands at ``begin``."""
        ...

    def standing(self) -> AbstractContextManager[Any]:
        """The view in a transaction that leaves the place where it is."""
        ...

    def moved(self, position: int) -> AbstractContextManager[Any]:
        """The view in a transaction in which the place has moved on; what the body raises takes
        both back and comes out as it is. Raises :class:`Overtaken` before the body begins."""
        ...

    def forget(self) -> AbstractContextManager[Any]:
        """The view in a transaction after which the projection was never anywhere."""
        ...
