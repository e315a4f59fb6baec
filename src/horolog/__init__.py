"""Horolog: an event-sourced job scheduler.

Every change in the life of a job is an event in an append-only Postgres log; everything else is a
projection of it. ``Scheduler`` registers jobs and asks about them, ``Worker`` runs them.

The names below are the public ones; each is imported when it is first used, so that a client does
not pay for a worker's imports.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from horolog.application.answers.dead_letter import DeadLetter as DeadLetter
    from horolog.application.answers.difference import Difference as Difference
    from horolog.application.answers.job import Job as Job
    from horolog.application.answers.logged_event import LoggedEvent as LoggedEvent
    from horolog.application.answers.occurrence import Occurrence as Occurrence
    from horolog.application.answers.planned_run import PlannedRun as PlannedRun
    from horolog.application.answers.zone_correction import ZoneCorrection as ZoneCorrection
    from horolog.application.commands.job_spec import JobSpec as JobSpec
    from horolog.application.privacy.forgetting import Forgetting as Forgetting
    from horolog.application.projecting.projection import Projection as Projection
    from horolog.application.worker.raised import Permanent as Permanent
    from horolog.application.worker.raised import Retryable as Retryable
    from horolog.application.worker.raised import Snooze as Snooze
    from horolog.application.worker.run import Run as Run
    from horolog.application.worker.settings import WorkerSettings as WorkerSettings
    from horolog.domain.errors import HorologError as HorologError
    from horolog.domain.errors import InvalidPayload as InvalidPayload
    from horolog.domain.errors import InvalidPolicy as InvalidPolicy
    from horolog.domain.errors import InvalidSchedule as InvalidSchedule
    from horolog.domain.errors import InvalidSetting as InvalidSetting
    from horolog.domain.errors import KeyConflict as KeyConflict
    from horolog.domain.errors import NoMasterKey as NoMasterKey
    from horolog.domain.errors import NotAllowed as NotAllowed
    from horolog.domain.errors import OutOfRange as OutOfRange
    from horolog.domain.errors import ProjectionStopped as ProjectionStopped
    from horolog.domain.errors import QueueUnavailable as QueueUnavailable
    from horolog.domain.errors import SchemaMissing as SchemaMissing
    from horolog.domain.errors import SchemaTooNew as SchemaTooNew
    from horolog.domain.errors import StaleFence as StaleFence
    from horolog.domain.errors import StoreUnavailable as StoreUnavailable
    from horolog.domain.errors import SubjectForgotten as SubjectForgotten
    from horolog.domain.errors import UnknownJob as UnknownJob
    from horolog.domain.errors import UnknownOccurrence as UnknownOccurrence
    from horolog.domain.errors import UnreadableEvent as UnreadableEvent
    from horolog.domain.errors import VersionConflict as VersionConflict
    from horolog.domain.reference import Ref as Ref
    from horolog.domain.retry import Retry as Retry
    from horolog.domain.schedule import Calendar as Calendar
    from horolog.domain.schedule import Cron as Cron
    from horolog.domain.schedule import Every as Every
    from horolog.domain.schedule import FireTime as FireTime
    from horolog.domain.schedule import HolidayCalendar as HolidayCalendar
    from horolog.domain.schedule import Once as Once
    from horolog.domain.schedule import Schedule as Schedule
    from horolog.domain.schedule import ScheduleDifference as ScheduleDifference
    from horolog.domain.schedule import Union as Union
    from horolog.interface.async_scheduler import AsyncScheduler as AsyncScheduler
    from horolog.interface.projecting import reset_projection as reset_projection
    from horolog.interface.projecting import run_projection as run_projection
    from horolog.interface.scheduler import Scheduler as Scheduler
    from horolog.interface.settings import Settings as Settings
    from horolog.interface.worker import Worker as Worker

_PLACES = {
    "AsyncScheduler": "interface.async_scheduler",
    "Calendar": "domain.schedule",
    "Cron": "domain.schedule",
    "DeadLetter": "application.answers.dead_letter",
    "Difference": "application.answers.difference",
    "Every": "domain.schedule",
    "FireTime": "domain.schedule",
    "Forgetting": "application.privacy.forgetting",
    "HolidayCalendar": "domain.schedule",
    "HorologError": "domain.errors",
    "InvalidPayload": "domain.errors",
    "InvalidPolicy": "domain.errors",
    "InvalidSchedule": "domain.errors",
    "InvalidSetting": "domain.errors",
    "Job": "application.answers.job",
    "JobSpec": "application.commands.job_spec",
    "KeyConflict": "domain.errors",
    "LoggedEvent": "application.answers.logged_event",
    "NoMasterKey": "domain.errors",
    "NotAllowed": "domain.errors",
    "Occurrence": "application.answers.occurrence",
    "Once": "domain.schedule",
    "OutOfRange": "domain.errors",
    "Permanent": "application.worker.raised",
    "PlannedRun": "application.answers.planned_run",
    "Projection": "application.projecting.projection",
    "ProjectionStopped": "domain.errors",
    "QueueUnavailable": "domain.errors",
    "Ref": "domain.reference",
    "Retry": "domain.retry",
    "Retryable": "application.worker.raised",
    "Run": "application.worker.run",
    "Schedule": "domain.schedule",
    "ScheduleDifference": "domain.schedule",
    "Scheduler": "interface.scheduler",
    "SchemaMissing": "domain.errors",
    "SchemaTooNew": "domain.errors",
    "Settings": "interface.settings",
    "Snooze": "application.worker.raised",
    "StaleFence": "domain.errors",
    "StoreUnavailable": "domain.errors",
    "SubjectForgotten": "domain.errors",
    "Union": "domain.schedule",
    "UnknownJob": "domain.errors",
    "UnknownOccurrence": "domain.errors",
    "UnreadableEvent": "domain.errors",
    "VersionConflict": "domain.errors",
    "Worker": "interface.worker",
    "WorkerSettings": "application.worker.settings",
    "ZoneCorrection": "application.answers.zone_correction",
    "reset_projection": "interface.projecting",
    "run_projection": "interface.projecting",
}

__all__ = [
    "AsyncScheduler",
    "Calendar",
    "Cron",
    "DeadLetter",
    "Difference",
    "Every",
    "FireTime",
    "Forgetting",
    "HolidayCalendar",
    "HorologError",
    "InvalidPayload",
    "InvalidPolicy",
    "InvalidSchedule",
    "InvalidSetting",
    "Job",
    "JobSpec",
    "KeyConflict",
    "LoggedEvent",
    "NoMasterKey",
    "NotAllowed",
    "Occurrence",
    "Once",
    "OutOfRange",
    "Permanent",
    "PlannedRun",
    "Projection",
    "ProjectionStopped",
    "QueueUnavailable",
    "Ref",
    "Retry",
    "Retryable",
    "Run",
    "Schedule",
    "ScheduleDifference",
    "Scheduler",
    "SchemaMissing",
    "SchemaTooNew",
    "Settings",
    "Snooze",
    "StaleFence",
    "StoreUnavailable",
    "SubjectForgotten",
    "Union",
    "UnknownJob",
    "UnknownOccurrence",
    "UnreadableEvent",
    "VersionConflict",
    "Worker",
    "WorkerSettings",
    "ZoneCorrection",
    "reset_projection",
    "run_projection",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'horolog' has no attribute {name!r}")
    value = getattr(import_module(f"horolog.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
