"""A connection that waits for an answer for so long and no longer.

The server's own time-outs do not help where its answer cannot reach us: a firewall that forgot the
connection, a machine that vanished, a proxy that holds what it should pass on. TCP notices some of
that (keepalives, and a time-out for what is not acknowledged), not where the far end of the TCP
connection is a machine in between. So whoever waits looks at the clock, and then gives the
connection up: whether the statement took effect is as unknown as after any broken connection.
"""

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow
from typing_extensions import override

T = TypeVar("T")


class BoundedConnection(psycopg.Connection[TupleRow]):
    """``answer_s``: the longest wait for a statement's answer; ``None`` has no bound."""

    answer_s: float | None = None

    @override
    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        """As the driver's; raises ``psycopg.OperationalError`` when the time is over."""
        if self.answer_s is None:
            return super().wait(gen, *args, **kwargs)
        return super().wait(self._until(gen, monotonic() + self.answer_s), *args, **kwargs)

    def _until(self, gen: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
        """The driver's steps; it comes back here some times a second also where nothing happens."""
        try:
            state = next(gen)
            while True:
                ready = yield state
                if monotonic() > deadline:
                    # Nothing may be asked over it any more, also not to roll back.
                    self.close()
                    raise psycopg.OperationalError(
                        f"no answer within {self.answer_s:g} s: the connection was given up"
                    )
                state = gen.send(ready)
        except StopIteration as end:
            return end.value
