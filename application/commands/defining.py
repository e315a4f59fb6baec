"""From what a client states to a definition that can be kept, or a refusal that says why not."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from horolog.application.commands.job_spec import JobSpec
from horolog.application.privacy.payloads import checked_subject, sealed_payload
from horolog.application.privacy.ports import Keyring, NoKeyring
from horolog.domain.definition import MAX_PAYLOAD_BYTES, JobDefinition
from horolog.domain.errors import InvalidPayload, InvalidPolicy, InvalidSchedule
from horolog.domain.reference import payload_to_json
from horolog.domain.schedule import Schedule
from horolog.domain.schedule.window import WindowedSchedule
from horolog.domain.sealed import RESERVED
from horolog.domain.text import is_storable

MAX_KEY_LENGTH = 512
_MOST_DIGITS = 4_000
"""Integers of so many digits are read back everywhere; some readers refuse those above 4,300."""
MAX_LABELS = 64
MAX_LABEL_LENGTH = 256


def define(
    spec: JobSpec,
    job_id: UUID,
    now: datetime,
    keyring: Keyring | None = None,
    present: JobDefinition | None = None,
) -> JobDefinition:
    """The definition that the log keeps: schedule anchored, payload as JSON, policies checked.

    The payload of a job with a subject is sealed, if it is not what ``present`` says already.
    Raises ``InvalidSchedule``, ``InvalidPayload`` or ``InvalidPolicy``; for a subject, what sealing
    raises.
    """
    schedule = checked_schedule(spec.schedule).anchored(now, str(job_id))
    payload = checked_payload(spec.payload)
    subject = checked_subject(spec.subject)
    definition = checked_rest(spec).alike(schedule, schedule.to_json(), payload)
    if subject is None:
        return definition
    # Last, when nothing is left to refuse: a subject's first value makes its key.
    kept = None if present is None or present.subject != subject else present.payload
    sealed = sealed_payload(keyring or NoKeyring(), subject, job_id, payload, kept)
    return definition.model_copy(update={"payload": sealed})


def checked_rest(spec: JobSpec) -> JobDefinition:
    """What a definition states beside schedule and payload, which are empty here; raises
    ``InvalidPolicy``."""
    try:
        return JobDefinition(
            name=spec.name,
            schedule={},
            payload={},
            queue=spec.queue,
            priority=spec.priority,
            retry=spec.retry,
            timeout=spec.timeout,
            overlap=spec.overlap,
            overlap_max=spec.overlap_max,
            catch_up=spec.catch_up,
            catch_up_window=spec.catch_up_window,
            catch_up_rate=spec.catch_up_rate,
            concurrency_key=_text("concurrency_key", spec.concurrency_key),
            concurrency_limit=spec.concurrency_limit,
            rate_limit=spec.rate_limit,
            on_unknown=spec.on_unknown,
            start_within=spec.start_within,
            finish_within=spec.finish_within,
            expect_success_by=spec.expect_success_by,
            owner=_text("owner", spec.owner),
            subject=spec.subject,
            labels=checked_labels(spec.labels),
        )
    except ValidationError as error:
        raise refused_policy(error) from None


def checked_schedule(schedule: object) -> Schedule:
    """The schedule itself; text such as ``"0 2 * * *"`` is refused with what would be right."""
    if isinstance(schedule, WindowedSchedule):
        return cast("Schedule", schedule)
    raise InvalidSchedule(
        f"schedule={_shown(schedule)} is a {type(schedule).__name__}: give Once(at),"
        " Every(seconds), Cron(expression, zone) or Calendar(rrule, zone)"
    )


def checked_payload(payload: Mapping[str, Any] | None) -> dict[str, Any]:
    """The payload as JSON values with every ``Ref`` in its JSON form; raises ``InvalidPayload``."""
    return written_payload(payload)[0]


def written_payload(payload: Mapping[str, Any] | None) -> tuple[dict[str, Any], bytes]:
    """As :func:`checked_payload`, and the same as JSON."""
    if not payload and payload is not None and isinstance(payload, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        return {}, b"{}"
    if payload is None:
        return {}, b"{}"
    checked = payload_to_json(payload)
    if reserved := RESERVED & checked.keys():
        raise InvalidPayload(
            f"the payload has the name {min(reserved)!r}, which encrypted payloads have for"
            " themselves: give it another name"
        )
    encoded = to_json(checked)
    size = len(encoded)
    try:
        if size > _MOST_DIGITS:
            from_json(encoded)
    except ValueError as error:  # an integer of thousands of digits
        raise InvalidPayload(
            f"the payload could not be read back ({error}): give such a number as text"
        ) from None
    if size > MAX_PAYLOAD_BYTES:
        raise InvalidPayload(
            f"the payload has {size} bytes as JSON, and at most {MAX_PAYLOAD_BYTES} are kept:"
            " keep large things elsewhere and name them with a Ref"
        )
    return checked, encoded


def checked_key(key: object) -> str:
    """A key as it may be registered; raises ``InvalidPolicy``."""
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_LENGTH or not is_storable(key):
        raise InvalidPolicy(
            f"key={_shown(key)}: a key is text of 1 to {MAX_KEY_LENGTH} characters without NUL,"
            " such as 'bill-42'"
        )
    return key


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Labels as they may be kept; raises ``InvalidPolicy``."""
    if not labels:
        return {}
    try:
        found = cast("dict[object, object]", dict(labels))
    except (TypeError, ValueError):
        raise InvalidPolicy(
            f"labels={_shown(labels)}: labels are a mapping of text to text, such as"
            " {'region': 'us'}"
        ) from None
    if len(found) > MAX_LABELS:
        raise InvalidPolicy(f"labels: {len(found)} are given, and a job has at most {MAX_LABELS}")
    for name, value in found.items():
        for text in (name, value):
            if not isinstance(text, str) or len(text) > MAX_LABEL_LENGTH or not is_storable(text):
                raise InvalidPolicy(
                    f"labels[{_shown(name)}]={_shown(value)}: names and values of labels are text"
                    f" of at most {MAX_LABEL_LENGTH} characters without NUL"
                )
    return cast("dict[str, str]", found)


def checked_policies(policies: Mapping[str, Any]) -> dict[str, Any]:
    """The policies of an update, as far as their text goes; the domain checks the rest."""
    checked = dict(policies)
    if "labels" in checked:
        checked["labels"] = checked_labels(checked["labels"])
    if "owner" in checked:
        checked["owner"] = _text("owner", checked["owner"])
    return checked


def refused_policy(error: ValidationError) -> InvalidPolicy:
    """What pydantic refused, in our words: the field, the value, and what would be right."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return InvalidPolicy(f"{field}={_shown(first['input'])}: {first['msg']}")


def _text(field: str, value: str | None) -> str | None:
    if isinstance(value, str) and not is_storable(value):
        raise InvalidPolicy(
            f"{field}={_shown(value)} holds NUL or a lone surrogate, which cannot be stored"
        )
    return value


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
