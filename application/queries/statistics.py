"""Runs, failures, durations and lateness of each job, handler, or all, in each stretch of time.

Occurrences come in the order of their fire times, so one bucket is counted after the other and only
its own values are kept. The quantiles are exact: the value at that rank, of all values.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from math import ceil
from typing import Final, Literal
from uuid import UUID

from horolog.application.answers.statistics import Quantiles, Statistics
from horolog.application.queries.audit_ports import Timing
from horolog.application.queries.limit import checked_limit
from horolog.domain.errors import InvalidPolicy
from horolog.domain.ids import EPOCH

Grouping = Literal["job", "name", "all"]

MOST_RUNS: Final = 2_000_000
"""Occurrences that one question reads at most: some hundred bytes of each are held at a time."""


@dataclass(slots=True)
class Tally:
    """The counts and values of one group in one bucket."""

    job_id: UUID | None
    name: str
    states: Counter[str] = field(default_factory=Counter[str])
    runs: int = 0
    failures: int = 0
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    late: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, timing: Timing) -> None:
        self.states[timing.state] += 1
        self.runs += timing.attempted
        self.failures += timing.failures
        if timing.seconds is not None:
            self.seconds.append(timing.seconds)
        if timing.late_s is not None:
            self.late.append(timing.late_s)


def statistics(
    timings: Iterable[Timing],
    *,
    bucket_s: float,
    by: Grouping,
    after: tuple[datetime, str] | None,
    limit: int,
) -> list[Statistics]:
    """A page of figures by bucket and group, behind the bucket and group ``after``.

    Raises ``InvalidPolicy`` for a question that reads more than ``MOST_RUNS`` occurrences, or whose
    buckets are no whole seconds.
    """
    checked_limit(limit)
    if not 1 <= bucket_s <= 366 * 86_400 or bucket_s != int(bucket_s):
        raise InvalidPolicy(f"bucket_s={bucket_s!r}: a bucket takes whole seconds, up to a year")
    length = timedelta(seconds=bucket_s)
    found: list[Statistics] = []
    for bucket, within in groupby(_counted(timings), key=lambda one: _bucket(one, length)):
        tallies: dict[str, Tally] = {}
        for timing in within:
            group, job_id, name = _group(timing, by)
            tallies.setdefault(group, Tally(job_id, name)).add(timing)
        for group in sorted(tallies):
            if after is None or (bucket, group) > after:
                found.append(_figures(bucket, bucket + length, group, tallies[group]))
                if len(found) == limit:
                    return found
    return found


def bucket_of(moment: datetime, bucket_s: float) -> datetime:
    """The beginning of the bucket that holds ``moment``; buckets count from 1970, in UTC."""
    length = timedelta(seconds=bucket_s)
    return moment - (moment - EPOCH) % length


def _bucket(timing: Timing, length: timedelta) -> datetime:
    return bucket_of(timing.fire_time, length.total_seconds())


def _counted(timings: Iterable[Timing]) -> Iterator[Timing]:
    for number, timing in enumerate(timings):
        if number == MOST_RUNS:
            raise InvalidPolicy(
                f"these are more than {MOST_RUNS:,} runs: choose a shorter time, a job or a name"
            )
        yield timing


def _group(timing: Timing, by: Grouping) -> tuple[str, UUID | None, str]:
    match by:
        case "job":
            return str(timing.job_id), timing.job_id, timing.name
        case "name":
            return timing.name, None, timing.name
        case "all":
            return "", None, ""


def _figures(bucket: datetime, until: datetime, group: str, tally: Tally) -> Statistics:
    return Statistics(
        bucket=bucket,
        until=until,
        group=group,
        job_id=tally.job_id,
        name=tally.name,
        runs=tally.runs,
        succeeded=tally.states["succeeded"],
        dead=tally.states["dead"],
        skipped=tally.states["skipped"],
        discarded=tally.states["discarded"],
        failures=tally.failures,
        duration_s=quantiles(tally.seconds),
        late_s=quantiles(tally.late),
    )


def quantiles(values: Iterable[float]) -> Quantiles:
    """The values at the ranks, none of them made up between two others."""
    ordered = sorted(values)
    if not ordered:
        return Quantiles(None, None, None)
    ranks = (ordered[ceil(part * len(ordered)) - 1] for part in (0.5, 0.95, 0.99))
    return Quantiles(*ranks)
