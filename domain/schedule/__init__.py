"""Schedules: when a job fires. Pure values; every question takes the instant it is asked from.

A schedule states local times in a named zone; the zone says at which instants they come. Two steps,
kept apart: what the expression means on a calendar (``cron_plan``, ``recurrence``), and what the
clock of the zone did that day (``local_walk``, the only place that knows of gaps and folds).

The kinds are ``Once``, ``Every``, ``Cron``, ``Calendar`` and ``Union``; each answers
``next_after``, ``upcoming`` and ``between``, and has a JSON form.
"""

from horolog.domain.schedule.calendar import Calendar
from horolog.domain.schedule.cron import Cron
from horolog.domain.schedule.difference import ScheduleDifference, difference
from horolog.domain.schedule.every import Every
from horolog.domain.schedule.fire_time import FireTime
from horolog.domain.schedule.holidays import HolidayCalendar, Roll
from horolog.domain.schedule.jitter import jittered
from horolog.domain.schedule.json_form import Schedule, schedule_from_json
from horolog.domain.schedule.local_walk import Fold, Gap
from horolog.domain.schedule.month_picture import MonthPicture, month_picture
from horolog.domain.schedule.omission import Omission
from horolog.domain.schedule.once import Once
from horolog.domain.schedule.union import Union
from horolog.domain.schedule.zone_data import tzdata_version, zone_names

__all__ = [
    "Calendar",
    "Cron",
    "Every",
    "FireTime",
    "Fold",
    "Gap",
    "HolidayCalendar",
    "MonthPicture",
    "Omission",
    "Once",
    "Roll",
    "Schedule",
    "ScheduleDifference",
    "Union",
    "difference",
    "jittered",
    "month_picture",
    "schedule_from_json",
    "tzdata_version",
    "zone_names",
]
