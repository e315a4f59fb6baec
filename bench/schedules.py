"""What schedules cost: the next fire time, a new expression, a year of a minutely preview.

    python bench/schedules.py [--json FILE]

Prints a table with the limit beside each figure, croniter and cronsim beside the figures that they
have too, and writes the same as JSON. Exits with 1 if a limit is passed. Times are medians of
single calls in microseconds unless the row says otherwise; nothing is warm but what its row names.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from croniter import croniter
from cronsim import CronSim

from horolog.domain.schedule import Calendar, Cron, Every, HolidayCalendar, Union, tzdata_version
from horolog.domain.schedule.cron_plan import cron_plan
from horolog.domain.schedule.zone_data import zone

EXPRESSIONS = (
    "0 2 * * *",
    "*/5 * * * *",
    "30 2 * * 1-5",
    "0 9 1-7,15-21 * 1",
    "*/15 9-17 * jan-mar mon-fri",
    "0 0 29 2 *",
    "0 9 LW * *",
    "0,15,30,45 6-22 * * *",
)
ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "UTC")
NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """One measured figure; ``limit`` and the peers in the same unit, ``None`` without one."""

    name: str
    unit: str
    figure: float
    p99: float | None = None
    limit: float | None = None
    croniter: float | None = None
    cronsim: float | None = None

    @property
    def within(self) -> bool:
        return self.limit is None or self.figure <= self.limit


def instants(n: int) -> list[datetime]:
    """Instants over some years, none of them special."""
    return [NEW_YEAR + timedelta(hours=37 * k, seconds=11 * k) for k in range(n)]


def calls_us(calls: list[Callable[[], object]]) -> list[float]:
    spent: list[float] = []
    for call in calls:
        begun = time.perf_counter_ns()
        call()
        spent.append((time.perf_counter_ns() - begun) / 1000)
    return spent


def row(name: str, spent: list[float], limit: float | None = None, **peers: float) -> Row:
    return Row(name, "µs", median(spent), quantiles(spent, n=100)[-1], limit, **peers)


def cached_expression(rounds: int) -> Row:
    schedules = [Cron(expression, name) for expression in EXPRESSIONS for name in ZONES]
    for schedule in schedules:
        schedule.next_after(NEW_YEAR)
    calls: list[Callable[[], object]] = [
        lambda s=schedule, a=after: s.next_after(a)
        for after in instants(rounds)
        for schedule in schedules
    ]
    return row("next fire, cached expression", calls_us(calls), 25.0)


def new_expression(rounds: int) -> Row:
    def ours(expression: str, name: str, after: datetime) -> object:
        cron_plan.cache_clear()
        return Cron(expression, name).next_after(after)

    cases = [(e, name, a) for a in instants(rounds) for e in EXPRESSIONS for name in ZONES]
    calls: list[Callable[[], object]] = [lambda c=case: ours(*c) for case in cases]
    readable = [case for case in cases if "W" not in case[0]]
    return row(
        "next fire, new expression",
        calls_us(calls),
        400.0,
        croniter=median(
            calls_us(
                [
                    lambda c=case: croniter(c[0], c[2].astimezone(zone(c[1]))).get_next()
                    for case in readable
                ]
            )
        ),
        cronsim=median(
            calls_us(
                [lambda c=case: next(CronSim(c[0], c[2].astimezone(zone(c[1])))) for case in cases]
            )
        ),
    )


def other_kinds(rounds: int) -> list[Row]:
    off = HolidayCalendar("bank", "1", ["2027-01-01"], weekdays_off=["sat", "sun"])
    kinds: dict[str, Any] = {
        "next fire, every 30 s": Every(30, NEW_YEAR),
        "next fire, every day at the local hour": Every(
            86_400, NEW_YEAR, zone="Europe/Berlin", keep_local_hour=True
        ),
        "next fire, last Friday (rrule)": Calendar(
            "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9", "Europe/Berlin", anchor=NEW_YEAR
        ),
        "next fire, rolled off holidays": Cron(
            "0 9 * * *", "Europe/Berlin", holidays=off, roll="next"
        ),
        "next fire, union of five": Union([Cron(f"{n} 2 * * *", "UTC") for n in range(5)]),
    }
    return [
        row(
            name,
            calls_us([lambda s=schedule, a=after: s.next_after(a) for after in instants(rounds)]),
        )
        for name, schedule in kinds.items()
    ]


def minutely_year() -> Row:
    schedule = Cron("* * * * *", "America/New_York")
    begun = time.perf_counter()
    fires = sum(1 for _ in schedule.between(NEW_YEAR, NEW_YEAR.replace(year=2028)))
    spent = time.perf_counter() - begun
    assert fires == 365 * 24 * 60
    return Row("a year of a minutely preview (525,600 fires)", "s", spent, None, 2.0)


def shown(rows: list[Row]) -> str:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"

    lines = [f"{'':46}{'median':>9}{'p99':>9}{'limit':>8}{'croniter':>10}{'cronsim':>9}"]
    lines += [
        f"{r.name:46}{number(r.figure):>7}{r.unit:>2}{number(r.p99):>9}{number(r.limit):>8}"
        f"{number(r.croniter):>10}{number(r.cronsim):>9}{'' if r.within else '  over'}"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> int:
    """Measures, prints, writes; the exit status says whether all limits were kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rounds", type=int, default=200, help="instants asked from (200)")
    options = parser.parse_args()
    rows = [
        cached_expression(options.rounds),
        new_expression(max(2, options.rounds // 10)),
        *other_kinds(options.rounds * 5),
        minutely_year(),
    ]
    print(shown(rows))
    if options.json is not None:
        told = {"tzdata": tzdata_version(), "python": sys.version.split()[0]}
        told["rows"] = [asdict(row) for row in rows]  # pyright: ignore[reportArgumentType]
        options.json.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0 if all(row.within for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
