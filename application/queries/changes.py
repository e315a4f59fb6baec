"""Who changed a job: its defining events, each beside the state before it, field by field.

Only events that a command or a change of the rules appended are changes. What a policy dropped and
what was ordered beside the schedule leaves the job as it is; ``history`` has those too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from horolog.application.answers.change import Change, FieldChange
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.answers.plain import plain
from horolog.application.log import Recorded
from horolog.application.queries.audit_ports import ReadsStreams
from horolog.application.queries.limit import checked_limit
from horolog.application.queries.past_jobs import states_at
from horolog.application.queries.past_ports import ReadsPastJobs
from horolog.domain.job import JobState, evolve
from horolog.domain.job_events import (
    DEFINING,
    Cancelled,
    Completed,
    Paused,
    Resumed,
    ZoneDataChanged,
)
from horolog.domain.sealed import token_of

CHANGING: Final = tuple(
    event.topic for event in (*DEFINING, Paused, Resumed, ZoneDataChanged, Cancelled, Completed)
)
PAGE = 1_000


def changes(
    streams: ReadsStreams, past: ReadsPastJobs, job_id: UUID, *, after: int, limit: int
) -> list[Change]:
    """The changes of a job with a version above ``after``, oldest first.

    The job is folded from its first event on, whatever the page: what a field was before is in the
    events before.
    """
    checked_limit(limit)
    found: list[Change] = []
    state: JobState | None = None
    for recorded in _changing(streams, job_id):
        before = state
        state = replace(evolve(before, job_id, recorded.event), version=recorded.version)
        if recorded.version > after:
            pictures = _picture(before), _picture(state)
            if hasattr(recorded.event, "next_fire"):
                pictures[0]["next_run"] = plain(_next_fire_before(past, job_id, recorded))
                pictures[1]["next_run"] = plain(state.next_fire)
            found.append(_change(job_id, recorded, tuple(differences(*pictures))))
            if len(found) == limit:
                break
    return found


def _next_fire_before(past: ReadsPastJobs, job_id: UUID, recorded: Recorded) -> datetime | None:
    """Where the schedule stood before the event: claims had moved it on, unseen by its stream."""
    position = recorded.position - 1
    for state in states_at(past, [job_id], recorded.recorded_at, position):
        return state.next_fire
    return None


def _changing(streams: ReadsStreams, job_id: UUID) -> Iterator[Recorded]:
    after = 0
    while page := streams.of_topics(job_id, CHANGING, after=after, limit=PAGE):
        yield from page
        after = page[-1].version
        if len(page) < PAGE:
            return


def _change(job_id: UUID, recorded: Recorded, fields: tuple[FieldChange, ...]) -> Change:
    told = LoggedEvent.of(recorded)
    return Change(
        job_id=job_id,
        version=recorded.version,
        position=recorded.position,
        at=recorded.recorded_at,
        what=told.topic.split(".")[1],
        actor=told.actor,
        reason=told.reason,
        correlation=told.correlation,
        causation=told.causation,
        fields=fields,
    )


def _picture(state: JobState | None) -> dict[str, Any]:
    if state is None:
        return {}
    return {
        **state.definition.model_dump(mode="json"),
        "key": state.key,
        "status": state.status,
        "partition": state.partition,
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    """The fields whose values differ, by path; objects are taken apart, lists are not."""
    flat_before, flat_after = dict(_flat(before)), dict(_flat(after))
    for path in sorted(flat_before.keys() | flat_after.keys()):
        old, new = flat_before.get(path), flat_after.get(path)
        if old != new:
            yield FieldChange(path, old, new)


def _flat(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{within}{name}"
        if isinstance(value, Mapping) and token_of(value) is None:  # pyright: ignore[reportUnknownArgumentType]
            yield from _flat(cast("Mapping[str, Any]", value), f"{path}.")
        else:
            yield path, value
