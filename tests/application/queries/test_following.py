"""A follower whose log comes and goes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from horolog.application.log import Recorded
from horolog.application.queries.following import Follower
from horolog.domain.errors import SchemaTooNew, StoreUnavailable
from horolog.domain.job_events import Paused

NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Log:
    """A log of so many events; ``failures`` are raised first, one a reading."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.failures: list[Exception] = []

    def stream(self, stream: UUID, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        raise NotImplementedError

    def log(
        self, *, after: int = 0, topics: Sequence[str] = (), limit: int = 1000
    ) -> list[Recorded]:
        if self.failures:
            raise self.failures.pop(0)
        last = min(self.events, after + limit)
        return [Recorded(n, NOW, UUID(int=n), 1, Paused()) for n in range(after + 1, last + 1)]


class News:
    """Tells at once, and counts how often it was waited for."""

    def __init__(self) -> None:
        self.waited = 0

    def wait(self, timeout_s: float) -> None:
        self.waited += 1

    def close(self) -> None: ...


def test_a_log_that_is_away_for_a_while_is_followed_on_where_it_was_left() -> None:
    log, pauses = Log(2), list[float]()
    follower = Follower(log, News(), pause=pauses.append)
    assert [e.position for e in follower.page()] == [1, 2]
    log.failures = [StoreUnavailable("away")] * 9
    log.events = 5
    seen: list[int] = []
    while not seen:
        seen += [e.position for e in follower.page()]
    assert seen == [3, 4, 5]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 5.0


def test_a_log_that_could_never_be_read_is_told_at_once() -> None:
    log = Log(1)
    log.failures = [StoreUnavailable("away")]
    with pytest.raises(StoreUnavailable):
        Follower(log, News()).page()


def test_a_schema_that_became_too_new_ends_the_following() -> None:
    log = Log(1)
    follower = Follower(log, News())
    follower.page()
    log.failures = [SchemaTooNew("upgrade horolog")]
    with pytest.raises(SchemaTooNew):
        follower.page()


def test_a_backlog_is_read_in_bounded_pages_without_waiting() -> None:
    log, news = Log(2_500), News()
    follower = Follower(log, news)
    pages = [len(follower.page()) for _ in range(3)]
    assert pages == [1_000, 1_000, 500]
    assert news.waited == 0


def test_events_of_other_topics_move_the_follower_on() -> None:
    log = Log(2_500)
    follower = Follower(log, News(), topics=["job.resumed.1"])
    assert follower.page() == []
    assert follower.position == 2_500
