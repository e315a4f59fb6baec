"""Lateness and throughput as curves and bars, drawn here: a picture needs no script.

A logarithmic scale for lateness, where milliseconds and minutes both matter; a linear one for runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final

from horolog.application.answers.statistics import Statistics
from horolog.interface.scheduler import Scheduler
from horolog.interface.web.page.rendering import seconds_words

WIDTH: Final = 1000
HEIGHT: Final = 190
LEFT: Final = 54
BOTTOM: Final = 20

SPANS: Final = {
    "hour": (timedelta(hours=1), 60, "%H:%M"),
    "day": (timedelta(days=1), 900, "%H:%M"),
    "week": (timedelta(days=7), 7200, "%a %d"),
    "month": (timedelta(days=30), 21_600, "%d %b"),
}
"""How far back, in stretches of so many seconds, with times written so."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The runs of a stretch of time: places on the picture, and the words on hovering."""

    x: float
    width: float
    good: float
    bad: float
    skipped: float
    words: str


@dataclass(frozen=True, slots=True)
class Plots:
    """``curves`` are the points of each quantile, ``bars`` the runs of each stretch."""

    curves: dict[str, str]
    lateness_marks: Sequence[tuple[float, str]]
    bars: Sequence[Bar]
    count_marks: Sequence[tuple[float, str]]
    time_marks: Sequence[tuple[float, str]]
    rows: Sequence[Statistics]
    runs: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    bottom: int = BOTTOM


def plots(scheduler: Scheduler, span: str, now: datetime, name: str | None) -> Plots:
    """The figures of the last hour, day, week or month."""
    length, bucket_s, written = SPANS[span]
    since = now - length
    rows = scheduler.statistics(
        since=since, until=now, bucket_s=bucket_s, by="all", name=name, limit=1000
    )
    right = WIDTH - 6

    def x(moment: datetime) -> float:
        share = (moment - since) / length
        return round(LEFT + max(0.0, min(1.0, share)) * (right - LEFT), 1)

    curves, lateness_marks = _lateness(rows, x)
    bars, count_marks = _throughput(rows, x)
    return Plots(
        curves,
        lateness_marks,
        bars,
        count_marks,
        [
            (x(since + length * part / 6), (since + length * part / 6).strftime(written))
            for part in range(7)
        ],
        rows,
        sum(row.runs for row in rows),
    )


def _lateness(
    rows: Sequence[Statistics], x: Callable[[datetime], float]
) -> tuple[dict[str, str], list[tuple[float, str]]]:
    found = {
        quantile: [
            (row.bucket + (row.until - row.bucket) / 2, value)
            for row in rows
            if (value := getattr(row.late_s, quantile)) is not None
        ]
        for quantile in ("p50", "p95", "p99")
    }
    values = [max(value, 0.001) for points in found.values() for _, value in points]
    if not values:
        return {}, []
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)
    plot = HEIGHT - BOTTOM - 8

    def y(value: float) -> float:
        share = (log10(max(value, 0.001)) - low) / (high - low)
        return round(8 + plot * (1 - share), 1)

    curves = {
        quantile: " ".join(f"{x(at)},{y(value)}" for at, value in points)
        for quantile, points in found.items()
    }
    return curves, [(y(10.0**power), seconds_words(10.0**power)) for power in range(low, high + 1)]


def _throughput(
    rows: Sequence[Statistics], x: Callable[[datetime], float]
) -> tuple[list[Bar], list[tuple[float, str]]]:
    most = max((_sum(row) for row in rows), default=0)
    if not most:
        return [], []
    plot = HEIGHT - BOTTOM - 8
    bars: list[Bar] = []
    for row in rows:
        begin, end = x(row.bucket), x(row.until)
        words = (
            f"{row.bucket.astimezone(UTC):%Y-%m-%d %H:%M}: {row.succeeded} succeeded,"
            f" {row.dead} dead, {row.skipped} skipped, {row.failures} failed attempts"
        )
        good, bad, skipped = (
            round(plot * n / most, 1)
            for n in (row.succeeded, row.dead, row.skipped + row.discarded)
        )
        width = max(1.0, round(end - begin - 1, 1))
        bars.append(Bar(begin, width, good, bad, skipped, words))
    return bars, [(8.0, str(most)), (round(8 + plot / 2, 1), f"{most / 2:g}"), (8 + plot, "0")]


def _sum(row: Statistics) -> int:
    return row.succeeded + row.dead + row.skipped + row.discarded
