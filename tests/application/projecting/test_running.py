"""The loop of a projection: what is kept, tried again, passed over and reported."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from horolog import LoggedEvent, Projection, ProjectionStopped, StoreUnavailable
from horolog.application.log import Recorded
from horolog.application.projecting.place import Overtaken
from horolog.application.projecting.running import Bounds, Patience, Running
from horolog.application.queries.following import Follower
from horolog.domain.job_events import Paused

QUICK = Patience(attempts=3, base_s=0.0)


@dataclass
class KeptPlace:
    """A place and a view in memory: what a transaction wrote is kept at its end, or not at all."""

    kept: list[int] = field(default_factory=list[int])
    at: int = 0
    taken: int = 0
    busy: int = 0
    cut: list[int] = field(default_factory=list[int])
    """Positions at which the connection breaks after the commit."""

    def take(self) -> bool:
        if self.busy:
            self.busy -= 1
            return False
        self.taken += 1
        return True

    def release(self) -> None:
        return

    def position(self, begin: int) -> int:
        return max(self.at, begin)

    @contextmanager
    def standing(self) -> Generator[Any]:
        yield self.kept

    @contextmanager
    def moved(self, position: int) -> Generator[Any]:
        if position <= self.at:
            raise Overtaken("there already")
        view: list[int] = []
        yield view
        self.kept += view
        self.at = position
        if position in self.cut:
            self.cut.remove(position)
            raise StoreUnavailable("cut off")

    @contextmanager
    def forget(self) -> Generator[Any]:
        yield self.kept
        self.at = 0


@dataclass
class Pages:
    """A log of so many events of one job."""

    events: int

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        at = datetime(2027, 1, 1, tzinfo=UTC)
        numbers = range(after + 1, min(self.events, after + limit) + 1)
        return [Recorded(number, at, UUID(int=1), number, Paused()) for number in numbers]

    def wait(self, timeout_s: float) -> None:
        return

    def close(self) -> None:
        return


@dataclass
class Numbers(Projection):
    """Writes down the positions; ``refuse`` says how often it does not take one."""

    name = "numbers"
    refuse: dict[int, int] = field(default_factory=dict[int, int])
    tried: list[int] = field(default_factory=list[int])

    def apply(self, event: LoggedEvent, view: Any) -> None:
        self.tried.append(event.position)
        view.append(event.position)
        if self.refuse.get(event.position, 0) > 0:
            self.refuse[event.position] -= 1
            raise ValueError("no such card")


def running(
    projection: Projection,
    place: KeptPlace,
    *,
    events: int = 10,
    begin: int = 0,
    bounds: Bounds | None = None,
    topics: Sequence[str] = (),
    stopping: Callable[[], bool] = lambda: False,
) -> Running:
    pages = Pages(events)

    def follow(after: int) -> Follower:
        return Follower(cast("Any", pages), pages, after=after, topics=topics, poll_s=0.0)

    return Running(
        projection,
        place,
        follow,
        begin=begin,
        bounds=bounds or Bounds(until=events),
        patience=QUICK,
        stopping=stopping,
        pause=lambda seconds: None,
    )


@pytest.mark.parametrize("batch", [1, 3, 10, 500])
def test_every_event_is_applied_once_in_order(batch: int) -> None:
    place, numbers = KeptPlace(), Numbers()
    assert running(numbers, place, bounds=Bounds(batch=batch, until=10)).run() == 10
    assert place.kept == list(range(1, 11))
    assert place.at == 10


def test_it_goes_on_where_it_was_and_begins_where_it_is_told() -> None:
    place = KeptPlace(at=4)
    running(Numbers(), place).run()
    assert place.kept == [5, 6, 7, 8, 9, 10]
    place = KeptPlace()
    running(Numbers(), place, begin=8).run()
    assert place.kept == [9, 10]


def test_a_passing_failure_is_tried_again_and_costs_nothing_of_the_batch() -> None:
    place, numbers = KeptPlace(), Numbers(refuse={4: 3})
    running(numbers, place).run()
    assert place.kept == list(range(1, 11))


def test_it_stops_before_an_event_that_cannot_be_applied_and_names_it() -> None:
    place, numbers = KeptPlace(), Numbers(refuse={4: 100})
    with pytest.raises(ProjectionStopped, match=r"position 4 .*job\.paused\.1.*no such card") as no:
        running(numbers, place).run()
    assert no.value.position == 4
    assert isinstance(no.value.__cause__, ValueError)
    assert place.kept == [1, 2, 3]
    assert place.at == 3
    # The batch, then alone, then twice more.
    assert numbers.tried.count(4) == 1 + QUICK.attempts

    with pytest.raises(ProjectionStopped):
        running(numbers, place).run()
    running(numbers, place, bounds=Bounds(until=10, skip={4})).run()
    assert place.kept == [1, 2, 3, 5, 6, 7, 8, 9, 10]


def test_an_answer_that_was_cut_off_repeats_nothing() -> None:
    place = KeptPlace(cut=[6])
    running(Numbers(), place, bounds=Bounds(batch=3, until=10)).run()
    assert place.kept == list(range(1, 11))
    assert place.taken == 2


def test_it_stands_by_while_another_holds_the_lock() -> None:
    place = KeptPlace(busy=3)
    assert running(Numbers(), place).run() == 10


def test_the_place_follows_a_log_of_which_nothing_is_wanted() -> None:
    place = KeptPlace()
    assert running(Numbers(), place, topics=["job.resumed.1"]).run() == 0
    assert place.at == 10


def test_it_ends_between_two_batches_when_it_is_told_to() -> None:
    place = KeptPlace()
    stop = lambda: len(place.kept) >= 4  # noqa: E731
    running(Numbers(), place, bounds=Bounds(batch=2), stopping=stop).run()
    assert place.kept == [1, 2, 3, 4]


@pytest.mark.parametrize("batch", [1, 3, 10])
@pytest.mark.parametrize("at", [4, 10])
def test_told_to_stop_while_an_event_waits_to_be_tried_again_it_passes_over_nothing(
    batch: int, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The place would be moved behind what nobody wants at once, not after a moment.
    monkeypatch.setattr("horolog.application.projecting.running.KEEP_UP_S", 0.0)
    place, numbers = KeptPlace(), Numbers(refuse={at: 2})
    # It was tried in its batch, if it was in one, and alone; then comes the word to stop.
    tries = 1 if batch == 1 or (batch, at) == (3, 10) else 2
    stop = lambda: numbers.tried.count(at) == tries  # noqa: E731
    running(numbers, place, bounds=Bounds(batch=batch), stopping=stop).run()
    assert place.kept == list(range(1, at))
    assert place.at == at - 1
    numbers.refuse.clear()
    running(numbers, place).run()
    assert place.kept == list(range(1, 11))
