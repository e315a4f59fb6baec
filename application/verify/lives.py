"""The life of each occurrence, folded while it is unfinished: invariants 1, 2, 3 and 7.

What has ended is forgotten. If something happens to it afterwards (a replay; or a second outcome,
which must not be) its earlier events are read again, so nothing escapes by coming late.
"""

from datetime import datetime
from typing import Any, Final

from horolog.application.verify.budgets import Budgets
from horolog.application.verify.ports import ScannedEvent, ScansLog
from horolog.application.verify.reading import job_named, read_state
from horolog.application.verify.report import Place, Report

_FOLLOWS: Final = {
    "claimed": {"new", "scheduled", "retrying"},
    "attempted": {"claimed"},
    "succeeded": {"running", "stopping"},
    "failed": {"running", "stopping"},
    "snoozed": {"running"},
    "lost": {"running", "stopping"},
    "cancel_requested": {"running"},
    "stopped": {"stopping"},
    "recalled": {"claimed"},
    "skipped": {"scheduled", "claimed", "retrying"},
    "dead_lettered": {"scheduled", "claimed", "running", "retrying"},
    "replayed": {"dead"},
    "discarded": {"dead"},
}
"""What may have happened last before each event, as the state that it left."""

_LEAVES: Final = {
    "claimed": "claimed",
    "attempted": "running",
    "succeeded": "succeeded",
    "failed": "retrying",
    "snoozed": "retrying",
    "lost": "retrying",
    "cancel_requested": "stopping",
    "stopped": "skipped",
    "recalled": "scheduled",
    "skipped": "skipped",
    "dead_lettered": "dead",
    "replayed": "scheduled",
    "discarded": "discarded",
}
_ENDS: Final = frozenset({"succeeded", "dead", "skipped", "discarded"})
_OF_AN_ATTEMPT: Final = frozenset(
    {"attempted", "succeeded", "failed", "snoozed", "lost", "stopped"}
)


class Life:
    """What is remembered of an unfinished occurrence."""

    __slots__ = ("attempt", "due", "failures", "job", "last", "state", "version")

    def __init__(self, state: str, job: bytes | None = None, due: datetime | None = None) -> None:
        self.state = state
        self.job = job
        self.due = due
        self.version = 0
        self.attempt = 0
        self.failures = 0
        self.last = 0


class Lives:
    """All unfinished occurrences up to the position read so far."""

    def __init__(self, log: ScansLog, report: Report, budgets: Budgets) -> None:
        self.unfinished: dict[bytes, Life] = {}
        self._log = log
        self._report = report
        self._budgets = budgets

    def order(self, occurrence: bytes, job: bytes, due: datetime | None) -> None:
        """A job's event ordered the occurrence; it waits for its claim."""
        if occurrence not in self.unfinished:
            self.unfinished[occurrence] = Life("scheduled", job, due)
            self._report.occurrences += 1

    def see(self, event: ScannedEvent, kind: str, state: dict[str, Any]) -> None:
        """The next event of the log, if it is an occurrence's: ``kind`` is "claimed" and so on."""
        life = self.unfinished.get(event.stream)
        if life is None:
            life = Life("new") if event.version == 1 else self._earlier(event)
        self._check(event, kind, state, life)
        self._count(kind, life, state)
        step(life, event, kind, state)
        if life.state in _ENDS:
            self.unfinished.pop(event.stream, None)
        else:
            self.unfinished[event.stream] = life

    def _earlier(self, event: ScannedEvent) -> Life:
        life = Life("new")
        for before in self._log.before(event.stream, event.position):
            kind = before.topic.split(".")[1]
            step(life, before, kind, read_state(before) or {})
        return life

    def _check(self, event: ScannedEvent, kind: str, state: dict[str, Any], life: Life) -> None:
        attempt = state.get("attempt")
        if kind == "claimed":
            right = attempt == life.attempt + 1
            right = right and (life.due is None or event.recorded_at >= life.due)
        else:
            right = kind not in _OF_AN_ATTEMPT or attempt == life.attempt
        if not right or event.version != life.version + 1 or life.state not in _FOLLOWS[kind]:
            self._complain(event, kind, state, life)
        if kind in ("failed", "lost"):
            here = event.place
            again = state.get("retry_at") is not None
            self._budgets.spent(life.job, life.failures + 1, again=again, event=here)

    def _complain(self, event: ScannedEvent, kind: str, state: dict[str, Any], life: Life) -> None:
        here = event.place
        last = Place(event.stream, life.version, life.last or None)
        if event.version != life.version + 1:
            self._report.violate(
                1, f"version {event.version} follows version {life.version}", last, here
            )
        if life.state == "succeeded":
            self._report.violate(2, f"{event.topic} follows Succeeded", last, here)
        elif life.state not in _FOLLOWS[kind]:
            self._report.violate(3, f"{event.topic} comes in the state {life.state}", last, here)
        if kind == "claimed" and state.get("attempt") != life.attempt + 1:
            self._report.violate(
                3, f"attempt {state.get('attempt')} is claimed after {life.attempt}", last, here
            )
        if kind in _OF_AN_ATTEMPT and state.get("attempt") != life.attempt:
            self._report.violate(
                3,
                f"{event.topic} of attempt {state.get('attempt')}, where {life.attempt} is claimed",
                last,
                here,
            )
        if kind == "claimed" and life.due is not None and event.recorded_at < life.due:
            self._report.violate(
                7,
                f"claimed at {event.recorded_at.isoformat()}, before {life.due.isoformat()}",
                last,
                here,
            )

    def _count(self, kind: str, life: Life, state: dict[str, Any]) -> None:
        report = self._report
        match kind:
            case "claimed":
                report.claims += 1
                report.occurrences += life.state == "new"
            case "attempted":
                report.attempts += 1
            case "succeeded":
                report.succeeded += 1
            case "failed" | "lost":
                report.failed += kind == "failed"
                report.lost += kind == "lost"
                report.retried += state.get("retry_at") is not None
            case "snoozed":
                report.snoozed += 1
            case "skipped" | "stopped":
                report.skipped += 1
            case "dead_lettered":
                report.dead_lettered += 1
                report.dead += 1
            case "replayed" | "discarded":
                report.replayed += kind == "replayed"
                report.discarded += kind == "discarded"
                report.dead -= life.state == "dead"
            case _:
                pass


def step(life: Life, event: ScannedEvent, kind: str, state: dict[str, Any]) -> None:
    """Moves a life on by one event, whether it was permitted or not."""
    life.state = _LEAVES[kind]
    life.version = event.version
    life.last = event.position
    life.due = None
    match kind:
        case "claimed":
            life.attempt = int(state.get("attempt") or 0)
            life.job = job_named(state["job_id"]) if life.job is None else life.job
        case "failed" | "lost":
            life.failures += 1
            life.due = instant(state.get("retry_at"))
        case "snoozed":
            life.due = instant(state.get("until"))
        case "recalled":
            life.due = instant(state.get("at"))
        case "replayed":
            life.failures = 0
            life.due = instant(state.get("at"))
        case _:
            pass


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
