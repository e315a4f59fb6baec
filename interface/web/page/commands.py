"""What the forms of jobs, runs and read models do; afterwards the page that one came from."""

import json
from collections.abc import Mapping
from typing import Any, cast

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from horolog.domain.errors import HorologError, InvalidPayload
from horolog.domain.schedule import Cron, Every, Schedule
from horolog.interface.web.access import Refused, server_of
from horolog.interface.web.page.asking import Command, Commanded
from horolog.interface.web.page.rendering import say
from horolog.interface.web.page.runs import instant_of

router = APIRouter()


@router.post("/jobs/{job_id}/{what}")
def of_a_job(job_id: str, what: str, asked: Commanded) -> Response:
    """Pause, resume, cancel, trigger, reschedule, update or backfill."""
    return _done(f"/jobs/{job_id}", lambda: _job(job_id, what, asked))


@router.post("/runs/{occurrence_id}/{what}")
def of_a_run(occurrence_id: str, what: str, asked: Commanded) -> Response:
    """Cancel, replay or discard."""

    def act() -> str:
        match what:
            case "cancel":
                asked.scheduler.cancel_occurrence(occurrence_id, reason=asked.reason)
                return "the run is cancelled, or asked to stop"
            case "replay":
                asked.scheduler.replay(occurrence_id, reason=asked.reason)
                return "the run is tried again"
            case "discard":
                asked.scheduler.discard(occurrence_id, reason=asked.reason)
                return "the dead letter is closed"
            case _:
                raise Refused(404, "there is no such command")

    return _done(f"/runs/{occurrence_id}", act)


@router.post("/projections/{what}")
def of_projections(request: Request, what: str, asked: Commanded) -> Response:
    """Verify, rebuild or roll back."""

    def act() -> str:
        name = asked.fields.get("name")
        names = () if name is None else (name,)
        match what:
            case "verify" | "rebuild" | "rollback":
                server_of(request).place.work.start(
                    what, names, actor=asked.caller.name, reason=asked.reason
                )
                return f"the {what} has begun"
            case _:
                raise Refused(404, "there is no such command")

    return _done("/projections", act)


def _job(job_id: str, what: str, asked: Command) -> str:
    scheduler, reason = asked.scheduler, asked.reason
    version = _version(asked.fields)
    match what:
        case "pause":
            scheduler.pause(job_id, expected_version=version, reason=reason)
            return "paused: no fire time is claimed until it is resumed"
        case "resume":
            scheduler.resume(
                job_id, catch_up=asked.flag("catch_up"), expected_version=version, reason=reason
            )
            return "resumed"
        case "cancel":
            scheduler.cancel(job_id, expected_version=version, reason=reason)
            return "cancelled: it never fires again"
        case "trigger":
            run = scheduler.trigger(
                job_id, at=instant_of(asked.fields.get("at", "")), reason=reason
            )
            return f"a run is ordered for {run.fire_time:%H:%M:%S} UTC"
        case "reschedule":
            scheduler.reschedule(
                job_id, _schedule(asked.fields), expected_version=version, reason=reason
            )
            return "the new schedule fires from now on"
        case "update":
            scheduler.update(
                job_id, payload=_payload(asked.fields), expected_version=version, reason=reason
            )
            return "runs that have not begun take the new payload"
        case "backfill":
            start, end = (instant_of(asked.fields.get(name, "")) for name in ("start", "end"))
            if start is None or end is None:
                raise Refused(422, "a backfill goes from a time to a time")
            count = scheduler.backfill(job_id, start, end, reason=reason)
            return f"{count} runs are ordered"
        case _:
            raise Refused(404, "there is no such command")


def _version(fields: Mapping[str, str]) -> int | None:
    """The version that the form was made from: whoever was faster is not overwritten."""
    text = fields.get("version", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _schedule(fields: Mapping[str, str]) -> Schedule:
    if cron := fields.get("cron"):
        return Cron(cron, zone=fields.get("zone", "UTC"))
    try:
        return Every(float(fields.get("every", "")))
    except ValueError as error:
        if isinstance(error, HorologError):
            raise
        raise Refused(422, "give a cron expression and its zone, or a number of seconds") from None


def _payload(fields: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        found: object = json.loads(fields.get("payload", "{}"))
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(f"the payload is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidPayload("a payload is an object: the handler's arguments by name")
    return cast("dict[str, Any]", found)


def _done(where: str, act: Any) -> Response:
    """Back to where it was ordered, which says what came of it: also what was refused."""
    page = RedirectResponse(where, 303)
    try:
        say(page, act())
    except HorologError as error:
        say(page, str(error), bad=True)
    return page
