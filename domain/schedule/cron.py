"""Cron: a crontab(5) expression in a named zone."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal, Self, Unpack

from pydantic import Field

from horolog.domain.schedule.cron_days import DayRule
from horolog.domain.schedule.cron_plan import CronPlan, cron_plan
from horolog.domain.schedule.fire_time import FireTime, fire_time, gap_omission, utc_second
from horolog.domain.schedule.local_walk import ClockRule, Fold, Gap, skipped, walk
from horolog.domain.schedule.omission import Omission
from horolog.domain.schedule.window import Window, WindowedSchedule
from horolog.domain.schedule.zone_data import zone as zone_named

Stars = Literal["elapsed", "fixed"]


class Cron(WindowedSchedule):
    """Fires at the local times that an expression names, in an IANA zone.

    Five fields (minute, hour, day of month, month, day of week) or six with the seconds first, or
    an alias such as ``@daily``. Names, lists, ranges, steps, ``L``, ``L-3``, ``LW``, ``15W``,
    ``5L``, ``2#1``, and ``H`` for a value drawn from ``hash_key``. Raises ``InvalidSchedule``,
    which shows the field, for what cannot be read or can never fire.

    ``gap`` and ``fold`` say what becomes of a local time that does not exist or happens twice. An
    expression with a star first in its minute or hour field follows elapsed time instead (the rule
    of Debian's cron): it fires in both passes and nothing stands in for a gap. ``stars="fixed"``
    puts such an expression under ``gap`` and ``fold`` too. ``day_rule`` says how the two day fields
    are joined: as in crontab(5), always ``and``, or ``or`` wherever both are more than a bare star.
    The other keywords are those of :class:`Window`.
    """

    kind: Literal["cron"] = "cron"
    expression: str
    zone: str
    gap: Gap = "run_after_gap"
    fold: Fold = "first"
    stars: Stars = "elapsed"
    day_rule: DayRule = "crontab"
    hash_key: Annotated[str, Field(max_length=1024)] | None = None

    def __init__(
        self,
        expression: str,
        zone: str,
        gap: Gap = "run_after_gap",
        fold: Fold = "first",
        *,
        stars: Stars = "elapsed",
        day_rule: DayRule = "crontab",
        hash_key: str | None = None,
        **window: Unpack[Window],
    ):
        self._validated(
            expression=" ".join(expression.split()) if isinstance(expression, str) else expression,  # pyright: ignore[reportUnnecessaryIsInstance]
            zone=zone, gap=gap, fold=fold, stars=stars, day_rule=day_rule, hash_key=hash_key,
            **window,
        )  # fmt: skip
        zone_named(self.zone)
        _ = self._plan

    @property
    def _plan(self) -> CronPlan:
        return cron_plan(self.expression, self.hash_key or "", self.day_rule)

    @property
    def _rule(self) -> ClockRule:
        elapsed = self._plan.elapsed and self.stars == "elapsed"
        return ClockRule(self.gap, self.fold, elapsed)

    def anchored(self, now: datetime, hash_key: str | None = None) -> Self:
        del now
        if self.hash_key is not None or hash_key is None or not self._plan.hashed:
            return self
        return self.model_copy(update={"hash_key": hash_key})

    def _stated(self, after: datetime) -> Iterator[FireTime]:
        zone = zone_named(self.zone)
        for landing in walk(self._plan, self.zone, utc_second(after), self._rule):
            yield fire_time(landing, zone)

    def _skipped(self, after: datetime, until: datetime) -> Iterator[Omission]:
        seconds = utc_second(after), utc_second(until)
        for gap_end, nominal in skipped(self._plan, self.zone, *seconds, self._rule):
            yield gap_omission(gap_end, nominal)
