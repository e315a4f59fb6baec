"""The durable runner, with a store that goes away just when somebody asks how far it came."""

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from horolog.application.projecting.running import Patience
from horolog.domain.errors import StoreUnavailable
from horolog.infrastructure.eventsourcing import durable


class Place:
    """Answers as it is told; what it answers is how far the follower came."""

    answers: Iterator[int | None]

    def __init__(self, database: object, name: str) -> None:
        return

    def take(self) -> bool:
        return True

    def position(self, begin: int) -> int:
        answer = next(self.answers)
        if answer is None:
            raise StoreUnavailable("away")
        return answer

    def release(self) -> None:
        return


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> type[Place]:
    monkeypatch.setattr(durable, "PostgresPlace", Place)
    return Place


def follow(made: list[int], stop: Event, *, until: int) -> None:
    def make() -> Any:
        made.append(1)
        if len(made) == until:
            stop.set()
        raise ValueError("a lock")

    durable.run_durably(
        make,
        None,  # pyright: ignore[reportArgumentType] - the place is not one in a database
        "f",
        stop=stop,
        patience=Patience(attempts=2, base_s=0.0),
    )


def test_a_store_that_is_away_when_a_failure_is_counted_is_waited_for(place: type[Place]) -> None:
    place.answers = iter([0, None, 0, None, 0, None, 0, 1])
    made, stop = list[int](), Event()
    follow(made, stop, until=4)
    assert len(made) == 4


def test_what_fails_where_it_failed_before_is_given_up(place: type[Place]) -> None:
    place.answers = iter([0, 0, 0, None, 0, 0])
    made = list[int]()
    with pytest.raises(ValueError, match="a lock"):
        follow(made, Event(), until=9)
    assert len(made) == 3, "what was counted stays counted while the store is away"
