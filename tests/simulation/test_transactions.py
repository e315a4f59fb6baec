"""A client's transaction in the simulated world, at every place where its connection may end."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from pydantic_core import to_json
from tests.simulation.transactions import Inbox, give

from horolog.domain.errors import StoreUnavailable


class Wire:
    """Fails at the call ``broken``: before the server has it, or after, with the answer."""

    def __init__(self, broken: int, *, done: bool) -> None:
        self.calls = 0
        self._broken = broken
        self._done = done

    def __call__(self, work: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls != self._broken:
            return work()
        if self._done:
            work()
        raise StoreUnavailable("cut")


def asking() -> Any:
    """A command that puts one row."""
    put: dict[str, object] = {
        "job_id": str(uuid4()),
        "partition": 0,
        "birth": False,
        "document": {},
    }
    yield SimpleNamespace(function="inbox_put", argument=to_json(put).decode())
    return "given"


PUT, COMMIT = 1, 2


@pytest.mark.parametrize(
    ("broken", "done", "fate"),
    [
        pytest.param(PUT, True, "undone", id="the answer of the row is lost"),
        pytest.param(COMMIT, False, "undone", id="the commit never arrives"),
        pytest.param(COMMIT, True, "waiting", id="the answer of the commit is lost"),
    ],
)
def test_no_transaction_stays_open_when_its_connection_ends(
    broken: int, done: bool, fate: str
) -> None:
    def tell(channel: str, payload: str) -> None:
        assert (channel, payload) == ("due", "inbox 0")

    world: Any = SimpleNamespace(log=SimpleNamespace(tables=SimpleNamespace(jobs={}), tell=tell))
    inbox, wire, context = Inbox(world), Wire(broken, done=done), SimpleNamespace()
    link: Any = wire
    with pytest.raises(StoreUnavailable):
        give(inbox, context, link, asking(), commit=True)  # pyright: ignore[reportArgumentType]
    assert wire.calls == broken
    assert [entry.fate for entry in inbox.entries] == [fate]
