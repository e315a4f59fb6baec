"""Rounds of elections take one line of the log for people, and hold nothing back."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.log import Recorded
from horolog.domain.event import Event
from horolog.domain.job_events import Paused
from horolog.domain.partition import Elected, Released
from horolog.interface.cli.election_rounds import ranges, rounds
from horolog.interface.cli.event_lines import EventLines

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def logged(position: int, event: Event, version: int = 1) -> LoggedEvent:
    return LoggedEvent.of(Recorded(position, NOW, UUID(int=position), version, event))


def elected(position: int, partition: int, by: str = "a", version: int = 1) -> LoggedEvent:
    event = Elected(partition=partition, instance=by, lease=10, actor=f"scanner {by}")
    return logged(position, event, version)


def lines(events: list[LoggedEvent]) -> list[str]:
    writer = EventLines(lambda _: "job", lambda _: None)
    return [writer.round(together) for together in rounds(events)]


def test_a_round_is_one_line_with_its_partitions_and_tokens() -> None:
    events = [elected(n + 1, n, version=1 + n // 32) for n in range(64)]
    events.append(logged(65, Paused(actor="ann", reason="tea")))
    events += [elected(66 + n, n, "b", 3) for n in (1, 2, 7)]
    released = Released(partition=7, instance="b", actor="scanner b")
    events.append(logged(70, released))
    first, paused, second, last = lines(events)
    assert "64 partitions" in first
    assert "0-63, tokens 1 to 2" in first
    assert first.strip().startswith("64 ")
    assert "by scanner a" in first
    assert "tea" in paused
    assert "3 partitions" in second
    assert "1-2, 7, token 3" in second
    assert "partition 7" in last


def test_each_event_comes_out_once_and_in_its_order() -> None:
    events = [elected(n, n % 8, "ab"[n // 3 % 2]) for n in range(1, 30)]
    events.insert(10, logged(100, Paused(actor="ann")))
    assert [event for together in rounds(events) for event in together] == events


def test_where_more_may_never_come_a_round_is_told_when_the_log_ends() -> None:
    told: list[int] = []

    def endless() -> Iterator[LoggedEvent]:
        for number in (1, 2, 3):
            yield elected(number, number)
        assert told == [3], "told before anybody waits for more"
        yield elected(4, 4)

    for together in rounds(endless(), lambda: 4 if told else 3):
        told.append(len(together))  # noqa: PERF401 - the source looks at it meanwhile
    assert told == [3, 1]


def test_ranges_are_short() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
    assert ranges([4]) == "4"
