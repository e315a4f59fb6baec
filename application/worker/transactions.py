"""Transactional handlers: the effect and the Succeeded event commit together or not at all.

    begin ─▶ the handler writes through the connection ─▶ commit, which appends Succeeded

Only the commit itself runs under the log lock, never the handler.
"""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from horolog.application.decision import Decision
from horolog.application.log import Verdict


class Transaction(Protocol):
    """An open transaction. Leaving it without ``succeed`` rolls back."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for the handler."""
        ...

    def succeed(self, decision: Decision) -> Verdict:
        """Appends the decision in this transaction and commits; refused, it rolls back instead.

        Errors: ``CommitUnknown`` where the connection broke so late that the commit may have
        happened; the driver's own errors where the handler left the transaction unusable.
        """
        ...


class AsyncTransaction(Protocol):
    """The same for coroutines."""

    @property
    def connection(self) -> Any: ...

    async def succeed(self, decision: Decision) -> Verdict: ...


class Transactions(Protocol):
    """Opens transactions; each has a connection of its own. Errors: ``StoreUnavailable``."""

    def begin(self) -> AbstractContextManager[Transaction]: ...

    def begin_async(self) -> AbstractAsyncContextManager[AsyncTransaction]: ...


class CommitUnknown(Exception):
    """The connection broke around a commit: only the log knows whether it happened."""
