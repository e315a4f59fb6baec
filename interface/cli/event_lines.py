"""Events as people read them: one line for each.

An occurrence's events name its job only in the claim; whoever follows the log wants the job's name
on each line. So the names of what went by are remembered, a bounded number of them, and what is not
remembered is asked for.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from uuid import UUID

import click

from horolog.application.answers.logged_event import LoggedEvent
from horolog.domain.alert_events import (
    AlertDelivered,
    AlertDeliveryFailed,
    AlertEvent,
    AlertRaised,
    AlertRepeated,
    AlertResolved,
    AlertRuleRemoved,
    AlertRuleSet,
)
from horolog.domain.event import Event
from horolog.domain.job_events import (
    BackfillRequested,
    FiresSkipped,
    JobEvent,
    PayloadChanged,
    PoliciesChanged,
    Registered,
    Rescheduled,
    Resumed,
    Triggered,
    ZoneDataChanged,
)
from horolog.domain.occurrence_events import (
    Attempted,
    Claimed,
    DeadLettered,
    Failed,
    Lost,
    OccurrenceEvent,
    Replayed,
    Skipped,
    Snoozed,
    Succeeded,
)
from horolog.domain.partition import PartitionEvent
from horolog.interface.cli.election_rounds import round_words
from horolog.interface.cli.rendering import on_one_line, text
from horolog.interface.cli.schedule_text import schedule_text

REMEMBERED = 10_000

_COLOURS = {
    "succeeded": "green",
    "failed": "yellow",
    "lost": "yellow",
    "dead_lettered": "red",
    "cancelled": "magenta",
    "stopped": "magenta",
    "missed": "red",
    "raised": "red",
    "repeated": "red",
    "resolved": "green",
    "delivery_failed": "yellow",
    "skipped": "magenta",
}


class EventLines:
    """Writes events as lines. ``job_of`` finds an occurrence's job, ``name_of`` a job's name.

    ``short`` lines have the time of day and no actor.
    """

    def __init__(
        self,
        name_of: Callable[[UUID], str | None],
        job_of: Callable[[UUID], UUID | None],
        *,
        short: bool = False,
    ) -> None:
        self._short = short
        self._name_of = lru_cache(REMEMBERED)(name_of)
        self._job_of = job_of
        self._jobs: dict[UUID, UUID] = {}

    def line(self, recorded: LoggedEvent) -> str:
        """Position, time, what happened to which job, the particulars, and who did it."""
        return self._line(recorded, self.subject(recorded), particulars(recorded.event))

    def round(self, events: Sequence[LoggedEvent]) -> str:
        """The same of a round of elections, with the position of its last event."""
        if len(events) == 1:
            return self.line(events[0])
        return self._line(events[-1], *round_words(events))

    def _line(self, recorded: LoggedEvent, about: str, words: str) -> str:
        event = recorded.event
        what = event.topic.rpartition(".")[0]
        colour = _COLOURS.get(what.rpartition(".")[2])
        subject = on_one_line(about)
        local = recorded.recorded_at.astimezone()
        parts = [
            f"{recorded.position:>6}",
            f"{local:%H:%M:%S.%f}"[:12]
            if self._short
            else local.isoformat(timespec="milliseconds"),
            click.style(f"{what:<24}", fg=colour),
            f"{subject:<16}",
            on_one_line(words),
        ]
        if event.reason:
            parts.append(f"because {event.reason!r}")
        if event.actor and not self._short:
            parts.append(click.style(f"by {on_one_line(event.actor)}", dim=True))
        return " ".join(part for part in parts if part)

    def subject(self, recorded: LoggedEvent) -> str:
        """The key or name of the job that the event is about, or which partition."""
        event = recorded.event
        if isinstance(event, Registered):
            return event.key or event.definition.name
        if isinstance(event, JobEvent):
            return self._name_of(recorded.stream) or str(recorded.stream)
        if isinstance(event, PartitionEvent):
            return f"partition {getattr(event, 'partition', '?')}"
        if isinstance(event, AlertEvent):
            return _whose(event)
        job_id = self.job_id(recorded)
        return (job_id and self._name_of(job_id)) or str(recorded.stream)

    def job_id(self, recorded: LoggedEvent) -> UUID | None:
        """The job that an event of a job or of an occurrence belongs to."""
        event, stream = recorded.event, recorded.stream
        if isinstance(event, JobEvent):
            return stream
        if not isinstance(event, OccurrenceEvent):
            return None
        if isinstance(event, Claimed):
            self._remember(stream, event.job_id)
            return event.job_id
        if stream not in self._jobs:
            found = self._job_of(stream)
            if found is None:
                return None
            self._remember(stream, found)
        return self._jobs[stream]

    def _remember(self, occurrence: UUID, job_id: UUID) -> None:
        while len(self._jobs) >= REMEMBERED:
            del self._jobs[next(iter(self._jobs))]
        self._jobs[occurrence] = job_id


def particulars(event: Event) -> str:
    """What an event says beside its topic, in a few words."""
    if isinstance(event, AlertEvent):
        return _of_alert(event)
    if isinstance(event, JobEvent):
        return _of_job(event)
    return _of_occurrence(event)


def _of_job(event: JobEvent) -> str:
    match event:
        case Registered():
            first = f", first at {text(event.next_fire)}" if event.next_fire else ""
            return schedule_text(event.definition.schedule) + first
        case Rescheduled():
            return schedule_text(event.schedule)
        case Resumed() | ZoneDataChanged():
            return f"next at {text(event.next_fire)}" if event.next_fire else ""
        case PayloadChanged():
            return _short(text(event.payload))
        case PoliciesChanged():
            return _short(text(event.changes))
        case Triggered():
            return f"one run at {text(event.fire_time)}"
        case BackfillRequested():
            then = f", as of version {event.definition_version}" if event.definition_version else ""
            return f"{len(event.fires)} runs, {text(event.start)} to {text(event.end)}{then}"
        case FiresSkipped():
            return f"{event.count} from {text(event.first)} to {text(event.last)}: {event.cause}"
        case _:
            return ""


def _whose(event: AlertEvent) -> str:
    if isinstance(event, AlertDelivered | AlertDeliveryFailed):
        return event.way
    return getattr(event, "owner", None) or (
        "everybody" if isinstance(event, AlertRuleSet | AlertRuleRemoved) else "without an owner"
    )


def _of_alert(event: AlertEvent) -> str:
    match event:
        case AlertRuleSet():
            return "tells " + (", ".join(event.ways) or "nobody")
        case AlertRaised() | AlertRepeated():
            return f"{event.condition}: {event.value:g}, threshold {event.threshold:g}"
        case AlertResolved():
            return f"{event.condition}, after {event.seconds:g} s"
        case AlertDelivered():
            return f"notice {event.notice}, try {event.tries}"
        case AlertDeliveryFailed():
            again = f"; again at {text(event.retry_at)}" if event.retry_at else ""
            return f"notice {event.notice}, try {event.tries}: {_short(event.error)}{again}"
        case _:
            return ""


def _of_occurrence(event: Event) -> str:
    match event:
        case Claimed():
            due = f", due {text(event.due)}" if event.due else ""
            return f"attempt {event.attempt} of {text(event.fire_time)}{due}, token {event.token}"
        case Attempted():
            return f"attempt {event.attempt}"
        case Succeeded():
            result = "" if event.result is None else f" → {_short(text(event.result))}"
            return f"attempt {event.attempt}, {event.seconds:.3f} s{result}"
        case Failed():
            again = f"; again at {text(event.retry_at)}" if event.retry_at else ""
            return f"attempt {event.attempt} ({event.kind}): {_short(event.error)}{again}"
        case Lost():
            again = f"; again at {text(event.retry_at)}" if event.retry_at else ""
            return f"attempt {event.attempt}{again}"
        case Snoozed():
            return f"attempt {event.attempt} until {text(event.until)}"
        case DeadLettered():
            whose = f", {event.owner}'s" if event.owner else ""
            return f"{event.cause}{whose}: {_short(event.error)}"
        case Skipped():
            return event.cause
        case Replayed():
            return f"at {text(event.at)}"
        case _:
            return ""


def _short(words: str, limit: int = 80) -> str:
    words = " ".join(words.split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"
