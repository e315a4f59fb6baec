"""Commands that a client gives in a transaction of its own: the inbox, and who drains it.

The table is as Postgres keeps it: a row is there when its transaction has committed, and leaves it
in the transaction that appends what it says. What becomes of each row is kept for the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic_core import from_json
from tests.simulation.network import Blocking, BlockingLog, BlockingWire

from horolog.application.commands.context import Context
from horolog.application.decision import Decision
from horolog.application.inbox.draining import Draining, Row, RowGone
from horolog.application.inbox.giving import Giving
from horolog.application.log import Appended, Fences
from horolog.infrastructure.simulated.inbox import looked
from horolog.infrastructure.simulated.orders import SimulatedOrders

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(slots=True)
class Entry:
    """A row. ``fate``: "open" in its transaction, "undone" where that was rolled back, "waiting",
    "carried out", "so already", or "set aside" with an ``error``."""

    id: int
    partition: int
    job_id: UUID
    birth: bool
    document: dict[str, Any]
    fate: str = "open"
    error: str = ""


@dataclass
class Inbox:
    """The table, at the server."""

    world: "World"
    entries: list[Entry] = field(default_factory=list[Entry])

    def waiting(self, partitions: Sequence[int], limit: int) -> list[Row]:
        return self._rows(lambda entry: entry.partition in partitions)[:limit]

    def of_job(self, job_id: UUID, limit: int) -> list[Row]:
        return self._rows(lambda entry: entry.job_id == job_id)[:limit]

    def settle(self, row: int, error: str | None) -> None:
        entry = self.entries[row]
        if entry.fate == "waiting":
            entry.fate, entry.error = ("so already", "") if error is None else ("set aside", error)

    def take(self, ids: Sequence[int], decisions: Sequence[Decision]) -> Appended:
        """Takes the rows and appends, both or neither."""
        if any(self.entries[row].fate != "waiting" for row in ids):
            raise RowGone
        log = self.world.log
        if len(decisions) > 1 and any(d.guard.id in log.tables.jobs for d in decisions):
            return Appended(["conflict"] * len(decisions), 0, self.world.now())
        appended = log.append(decisions)
        if all(verdict == "accepted" for verdict in appended.verdicts):
            for row in ids:
                self.entries[row].fate = "carried out"
        return appended

    def _rows(self, wanted: Callable[[Entry], bool]) -> list[Row]:
        return [
            Row(entry.id, entry.job_id, entry.document)
            for entry in self.entries
            if entry.fate == "waiting" and wanted(entry)
        ]

    # The client's side.

    def answer(self, context: Context, mine: list[Entry], function: str, asked: str) -> str | None:
        """What a question is answered with in a transaction whose rows are ``mine``."""
        seen = [entry for entry in self.entries if entry.fate == "waiting" or entry in mine]
        if function == "inbox_look":
            job_id = UUID(from_json(asked)["job_id"])
            pending = [entry.document for entry in seen if entry.job_id == job_id]
            return looked(context, SimulatedOrders(self.world.log), asked, pending)
        put = from_json(asked)
        job_id = UUID(put["job_id"])
        if put["birth"] and (
            job_id in self.world.log.tables.jobs
            or any(entry.birth and entry.job_id == job_id for entry in seen)
        ):
            return None
        entry = Entry(len(self.entries), put["partition"], job_id, put["birth"], put["document"])
        self.entries.append(entry)
        mine.append(entry)
        return str(entry.id)

    def end(self, mine: Sequence[Entry], *, commit: bool) -> None:
        for entry in mine:
            entry.fate = "waiting" if commit else "undone"
            if commit:
                self.world.log.tell("due", f"inbox {entry.partition}")


def give(
    inbox: Inbox, context: Context, link: BlockingWire, giving: Giving, *, commit: bool
) -> Any:
    """Gives a command in a transaction of a fibre; what it leads to where that commits.

    ``context`` is the server's: questions are answered there.
    """
    mine: list[Entry] = []
    try:
        given = _given(inbox, context, link, giving, mine)
        link(lambda: inbox.end(mine, commit=commit))
    except BaseException:
        # Also where the commit itself never arrived: the server takes back what is open when its
        # connection ends. One whose answer alone was lost is not open any more.
        inbox.end([entry for entry in mine if entry.fate == "open"], commit=False)
        raise
    return given


def _given(
    inbox: Inbox, context: Context, link: BlockingWire, giving: Giving, mine: list[Entry]
) -> Any:
    question = next(giving)
    try:
        while True:
            ask = partial(inbox.answer, context, mine, question.function, question.argument)
            question = giving.send(link(ask))
    except StopIteration as end:
        return end.value


class _Taking:
    """As :class:`horolog.application.inbox.draining.Taking` promises, over a wire."""

    def __init__(self, inbox: Inbox, link: BlockingWire, ids: Sequence[int]) -> None:
        self.taken = False
        self._inbox = inbox
        self._link = link
        self._ids = list(ids)

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        if self.taken:
            return BlockingLog(self._inbox.world.log, self._link).append(decisions, fences)
        batch = list(decisions)
        appended = self._link(lambda: self._inbox.take(self._ids, batch))
        self.taken = all(verdict == "accepted" for verdict in appended.verdicts)
        return appended


class WiredInbox(Blocking):
    """As :class:`horolog.application.inbox.draining.Inbox` promises, over a wire."""

    def __init__(self, inbox: Inbox, link: BlockingWire) -> None:
        super().__init__(inbox, link)
        self._inbox = inbox
        self._wire = link

    def taking(self, ids: Sequence[int]) -> _Taking:
        return _Taking(self._inbox, self._wire, ids)


def draining(inbox: Inbox, link: BlockingWire, context: Context) -> Draining:
    """The real one, for a process with this connection."""
    orders: Any = Blocking(SimulatedOrders(inbox.world.log), link)
    wired: Any = WiredInbox(inbox, link)
    return Draining(wired, orders, context)


class DrainsOverWire:
    """As :class:`horolog.application.scanner.receiving.DrainsInbox` promises, in fibres."""

    def __init__(self, world: "World", draining: Draining) -> None:
        self._world = world
        self._draining = draining

    async def drain(self, partitions: Sequence[int]) -> int:
        future = self._world.loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)

        self._world.fibre(lambda: self._draining.drain(partitions), done)
        return await future
