"""What each part of the scheduler's face stands on: a connection, and a way to carry out.

A command about one job is said once, as a call on whoever carries it out: at once, or the inbox
within the transaction of a client's own connection.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from horolog.application.commands.at_once import AtOnce
from horolog.application.commands.context import Context
from horolog.interface.wiring import Client

if TYPE_CHECKING:
    from horolog.application.inbox.commands import Commands
    from horolog.application.inbox.giving import Giving, Outcome

Answer = TypeVar("Answer")
Taker: TypeAlias = "AtOnce | Commands"
"""Who takes a command: both have the same methods."""


class Connected:
    """A client of one namespace; :class:`horolog.interface.scheduler.Scheduler` is the one."""

    def read_out(self, answer: Answer) -> Answer:
        raise NotImplementedError

    def _connected(self) -> Client:
        raise NotImplementedError

    @property
    def _context(self) -> Context:
        return self._connected().context

    def _carried_out(
        self,
        connection: object | None,
        command: "Callable[[Taker], Outcome | Giving]",
        answer: Callable[[Any], Answer],
    ) -> Answer:
        """The answer to a command, made from the state that it leads to."""
        raise NotImplementedError
