"""News of the index: rows that were just written and are due soon, heard at once.

A notification is lines of ``partition due_us id``, or ``partition due_us *`` where an append wrote
more rows than fit: then the partition is read again from that time on. ``lane "name"`` says that a
lane which is waited for has a slot free, ``inbox partition`` that a client has committed a command
for a job of it, ``scanners`` that one of them has joined or left. News is only ever a shortcut:
whatever is not heard, a sweep, a look at the lanes or the inbox, or a renewal finds.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from horolog.application.scanner.wheel import Entry


@dataclass(frozen=True, slots=True)
class Reread:
    """Rows of the partition were written from ``due_us`` on: too many to name."""

    partition: int
    due_us: int


@dataclass(frozen=True, slots=True)
class LaneFree:
    """A slot of the lane is free, or its limit was changed."""

    name: str


@dataclass(frozen=True, slots=True)
class InboxFilled:
    """The inbox holds a command for a job of the partition."""

    partition: int


@dataclass(frozen=True, slots=True)
class ScannersChanged:
    """An instance has joined or left: the partitions are shared anew."""


class HearsNews(Protocol):
    async def hear(
        self, heard: Callable[[str], None], connected: Callable[[], None], stop: asyncio.Event
    ) -> None:
        """Calls ``heard`` with each notification, in the loop's thread, until ``stop`` is set.

        Connects again for as long as it takes; ``connected`` is called each time it has begun to
        listen: whatever was told before that may have been missed. Raises nothing.
        """
        ...


PARTITIONS = range(2**15)
INSTANTS_US = range(-62_135_596_800_000_000, 253_402_300_800_000_000)
"""From the year 1 to the year 9999: anybody in the database may notify, and of any number."""

News = Entry | Reread | LaneFree | InboxFilled | ScannersChanged


def read_news(payload: str) -> Iterator[News]:
    """What a notification says; a line that cannot be read says nothing."""
    for line in payload.split("\n"):
        if line == "scanners":
            yield ScannersChanged()
            continue
        try:
            if line.startswith("lane "):
                yield LaneFree(str(json.loads(line.removeprefix("lane "))))
                continue
            if line.startswith("inbox "):
                yield InboxFilled(_within(PARTITIONS, line.removeprefix("inbox ")))
                continue
            partition, due_us, identity = line.split(" ")
            number, due = _within(PARTITIONS, partition), _within(INSTANTS_US, due_us)
            yield Reread(number, due) if identity == "*" else Entry(due, UUID(identity), number)
        except (ValueError, RecursionError):
            continue


def _within(numbers: range, text: str) -> int:
    number = int(text)
    if number not in numbers:
        raise ValueError(number)
    return number
