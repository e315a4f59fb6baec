"""Commands on a log in memory, where a test can let somebody else be faster at any moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count

import pytest

from horolog.application.commands.context import Context
from horolog.application.decision import Decision
from horolog.application.log import Appended, Fences
from horolog.infrastructure.simulated.log import SimulatedLog
from horolog.infrastructure.simulated.states import SimulatedStates

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@dataclass
class Meddled:
    """A log before whose appends, one after the other, something else happens first."""

    log: SimulatedLog
    meddling: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    appends: int = 0

    def append(self, decisions: Sequence[Decision], fences: Fences | None = None) -> Appended:
        self.appends += 1
        if self.meddling:
            self.meddling.pop(0)()
        return self.log.append(decisions, fences)


class StoodClock:
    def now(self) -> datetime:
        return NOW


class Counted:
    """Randomness that is none: each draw is the next number."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def draw(self, size: int) -> bytes:
        return next(self._numbers).to_bytes(size)


@pytest.fixture
def meddled() -> Meddled:
    return Meddled(SimulatedLog(lambda: NOW))


@pytest.fixture
def context(meddled: Meddled) -> Context:
    """The commands of a client whose appends may be meddled with."""
    return _context(meddled)


@pytest.fixture
def other(meddled: Meddled) -> Context:
    """Another client of the same log, in whose way nobody is."""
    return _context(meddled.log)


def _context(log: Meddled | SimulatedLog) -> Context:
    underneath = log.log if isinstance(log, Meddled) else log
    return Context(
        log=log,
        states=SimulatedStates(underneath),
        clock=StoodClock(),
        entropy=Counted(),
        namespace="simulated",
        partitions=64,
        actor="ann" if isinstance(log, Meddled) else "bob",
    )
