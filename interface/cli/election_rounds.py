"""Rounds of elections as one line each, for people: a scanner that starts is elected 64 times.

Events of partitions that follow one another in the log, of one kind and by one instance, are a
round. Nothing is lost: with --json each is an object, and ``--topic partition`` lists them singly.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from horolog.application.answers.logged_event import LoggedEvent
from horolog.domain.partition import Elected, PartitionEvent, Released


def rounds(
    events: Iterable[LoggedEvent], head: Callable[[], int] | None = None
) -> Iterator[list[LoggedEvent]]:
    """The events, those of a round together. ``head`` is the position up to which the log reaches,
    asked for where ``events`` may have no end: a round is not held back for what may never come."""
    pending: list[LoggedEvent] = []
    known = 0
    for event in events:
        if pending and not _same_round(pending[-1], event):
            yield pending
            pending = []
        pending.append(event)
        if head is not None and isinstance(event.event, PartitionEvent):
            if known <= event.position:
                known = head()
            if known > event.position:
                continue
        elif isinstance(event.event, PartitionEvent):
            continue
        yield pending
        pending = []
    if pending:
        yield pending


def _same_round(one: LoggedEvent, next_one: LoggedEvent) -> bool:
    return (
        isinstance(next_one.event, PartitionEvent)
        and one.topic == next_one.topic
        and one.actor == next_one.actor
        and one.event.reason == next_one.event.reason
    )


def round_words(events: Sequence[LoggedEvent]) -> tuple[str, str]:
    """Which partitions a round is about, and the particulars."""
    numbers = sorted(
        event.event.partition for event in events if isinstance(event.event, (Elected, Released))
    )
    subject = f"{len(numbers)} partitions"
    if not isinstance(events[0].event, Elected):
        return subject, ranges(numbers)
    tokens = sorted(event.version for event in events)
    said = (
        f"token {tokens[0]}" if tokens[0] == tokens[-1] else f"tokens {tokens[0]} to {tokens[-1]}"
    )
    return subject, f"{ranges(numbers)}, {said}"


def ranges(numbers: Sequence[int]) -> str:
    """Sorted numbers in short: 0-15, 17, 20-63."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] + 1 == number:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
