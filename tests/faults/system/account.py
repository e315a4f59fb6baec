"""The account at the end: effects, log, index and queue have to tell the same story.

Every expected occurrence has succeeded exactly once, and took effect as its handler promises:

    transactional…   exactly one row, of the very attempt that succeeded
    idempotent       exactly one row, of an attempt that the log knows
    plain…           a row of the attempt that succeeded, and at most one of each other attempt

An effect of an attempt that the log does not know is one that ran behind the log's back.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from horolog.application.verify import Report
from horolog.interface.verification import verify_log

if TYPE_CHECKING:
    from tests.faults.system.system import System


@dataclass
class Account:
    """``lost``, ``doubled`` and ``wrong`` are sentences, one for each thing that must not be."""

    occurrences: int
    report: Report
    counters: dict[str, int]
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])

    @property
    def problems(self) -> list[str]:
        return [*self.lost, *self.doubled, *self.wrong]


def account(system: "System") -> Account:
    """What came of everything that was registered; asked when nothing is left to do."""
    report = verify_log(system.settings)
    counters = dict(system.ask("SELECT name, value FROM :schema.counters"))
    job_of: dict[UUID, UUID] = dict(
        system.ask(
            "SELECT DISTINCT stream, (state ->> 'job_id')::uuid FROM :schema.log"
            " WHERE topic = 'occurrence.claimed.1'"
        )
    )
    found = Account(sum(system.expected.values()), report, counters)
    found.wrong += [str(violation) for violation in report.violations[:20]]
    _of_the_rest(system, found)
    succeeded = _attempts(system, "occurrence.succeeded.1")
    _of_jobs(system, succeeded, job_of, found)
    _of_effects(system, succeeded, found)
    return found


def _of_the_rest(system: "System", found: Account) -> None:
    rows = system.ask("SELECT count(*)::int FROM :schema.next_runs")[0][0]
    messages = system.messages()
    open_jobs = system.ask(
        "SELECT count(*)::int FROM :schema.jobs WHERE status NOT IN ('completed', 'cancelled')"
    )
    other = system.ask(
        "SELECT state, count(*) FROM :schema.executions WHERE job_id <> ALL (%s) GROUP BY state",
        (list(system.restless),),
    )
    found.wrong += [f"{rows} rows are left in next_runs"] * (rows > 0)
    found.wrong += [f"{messages} messages are left in the stream"] * (messages > 0)
    found.wrong += [f"{open_jobs[0][0]} jobs are not completed"] * (open_jobs[0][0] > 0)
    found.wrong += [f"{n} occurrences are {state}" for state, n in other if state != "succeeded"]


def _of_jobs(
    system: "System",
    succeeded: dict[UUID, list[int]],
    job_of: dict[UUID, UUID],
    found: Account,
) -> None:
    times = Counter(job_of[occurrence] for occurrence in succeeded)
    for job, expected in system.expected.items():
        if times[job] < expected:
            found.lost.append(f"job {job}: {times[job]} of {expected} occurrences succeeded")
        elif times[job] > expected:
            found.doubled.append(f"job {job}: {times[job]} occurrences succeeded, not {expected}")
    strangers = times.keys() - system.expected.keys() - system.restless
    found.wrong += [f"nobody registered job {job}" for job in strangers]


def _of_effects(system: "System", succeeded: dict[UUID, list[int]], found: Account) -> None:
    attempted = _attempts(system, "occurrence.attempted.1")
    effects: dict[UUID, list[tuple[str, int]]] = defaultdict(list)
    for handler, key, attempt in system.ask(
        "SELECT handler, key::uuid, attempt FROM :schema.effects"
    ):
        effects[key].append((handler, attempt))
    for key, attempts in succeeded.items():
        if len(attempts) > 1:
            found.doubled.append(f"{key} succeeded in its attempts {attempts}")
        if key not in effects:
            found.lost.append(f"{key} succeeded and took no effect")
    for key, rows in effects.items():
        handler = rows[0][0]
        tries = sorted(attempt for _, attempt in rows)
        said = f"{key} ({handler}) took effect in attempts {tries}, succeeded in"
        said += f" {succeeded.get(key, [])} of {attempted.get(key, [])}"
        if not set(tries) <= set(attempted.get(key, [])):
            found.wrong.append(f"{said}: behind the log's back")
        if handler.startswith("plain"):
            if len(tries) != len(set(tries)):
                found.doubled.append(f"{said}: one attempt twice")
            elif not set(succeeded.get(key, [])) <= set(tries):
                found.lost.append(f"{said}: the one that succeeded did not")
        elif len(tries) > 1:
            found.doubled.append(said)
        elif handler.startswith("transactional") and tries != succeeded.get(key):
            found.wrong.append(f"{said}: not together")


def _attempts(system: "System", topic: str) -> dict[UUID, list[int]]:
    """The numbers of the attempts with such an event, for each occurrence."""
    found: dict[UUID, list[int]] = defaultdict(list)
    for stream, attempt in system.ask(
        "SELECT stream, (state ->> 'attempt')::int FROM :schema.log WHERE topic = %s"
        " ORDER BY position",
        (topic,),
    ):
        found[stream].append(attempt)
    return found
