"""A rule of alerts: what is too much for an owner, and whom to tell.

It may hold a secret (a webhook's path, a command's arguments), so it is kept beside the log, and
:meth:`AlertRule.shown` is what events, listings and messages may say of it.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from horolog.domain.alert_events import AlertCondition, AlertWay
from horolog.domain.errors import InvalidPolicy
from horolog.domain.ids import alert_rule_stream, alert_stream
from horolog.domain.text import is_storable

CONDITIONS: tuple[AlertCondition, ...] = ("dead_letter_depth", "dead_letter_age", "deadline")

_Seconds = Annotated[float, Field(gt=0, le=366 * 86_400, allow_inf_nan=False)]
_Text = Annotated[str, Field(min_length=1, max_length=2_000)]
_SUBJECT = re.compile(r"[^\s.*>$]+(\.[^\s.*>]+)*")


class AlertRule(BaseModel):
    """``owner``'s work (``None``: that of everybody without a rule of their own) is watched for
    ``dead_letters`` of them, one that is ``dead_letter_age`` seconds old, and missed ``deadlines``.

    What holds is told again every ``repeat`` seconds. ``command`` is a program and its arguments,
    run without a shell; ``webhook`` a URL that gets a POST; ``nats`` a subject.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    owner: Annotated[str, Field(max_length=256)] | None = None
    dead_letters: Annotated[int, Field(ge=1, le=100_000)] | None = None
    dead_letter_age: _Seconds | None = None
    deadlines: bool = False
    repeat: Annotated[float, Field(ge=1, le=366 * 86_400, allow_inf_nan=False)] = 3_600.0
    command: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=100)] | None = None
    webhook: _Text | None = None
    nats: Annotated[str, Field(max_length=256)] | None = None

    @classmethod
    def checked(
        cls,
        owner: str | None = None,
        *,
        dead_letters: int | None = None,
        dead_letter_age: float | None = None,
        deadlines: bool = False,
        repeat: float = 3_600.0,
        command: Sequence[str] | None = None,
        webhook: str | None = None,
        nats: str | None = None,
    ) -> Self:
        """The rule; ``InvalidPolicy`` says what cannot be, and shows no secret."""
        if isinstance(command, str):
            raise InvalidPolicy(
                "command: it is run without a shell; give the program and its arguments as a list"
            )
        try:
            return cls(
                owner=owner,
                dead_letters=dead_letters,
                dead_letter_age=dead_letter_age,
                deadlines=deadlines,
                repeat=repeat,
                command=None if command is None else tuple(command),
                webhook=webhook,
                nats=nats,
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "alert"
            said = first["msg"].removeprefix("Value error, ")
            raise InvalidPolicy(f"{field}: {said}") from None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.dead_letters is None and self.dead_letter_age is None and not self.deadlines:
            raise ValueError("it watches nothing: state dead_letters, dead_letter_age or deadlines")
        for text in (self.owner, self.webhook, *(self.command or ())):
            if text is not None and not is_storable(text):
                raise ValueError("it holds a character that Postgres cannot store")
        if self.webhook is not None:
            try:
                url = urlsplit(self.webhook)
                _ = url.port  # raises where it is no number
                possible = url.scheme in ("http", "https") and bool(url.hostname)
                possible = possible and self.webhook.isascii() and self.webhook.isprintable()
            except ValueError:
                possible = False
            if not possible or " " in self.webhook:
                raise ValueError("the webhook is no URL: it looks like https://host/path")
        if self.nats is not None and not _SUBJECT.fullmatch(self.nats):
            raise ValueError(
                f"{self.nats!r} is no subject of NATS to publish to: words with dots between them"
            )
        return self

    @property
    def ways(self) -> list[AlertWay]:
        """Whom it tells, in a fixed order; nobody is possible: then the log and `doctor` do."""
        known: tuple[AlertWay, ...] = ("command", "webhook", "nats")
        return [way for way in known if getattr(self, way) is not None]

    def shown(self) -> dict[AlertWay, str]:
        """What may be said of where it sends to: no argument, no path, no password."""
        said: dict[AlertWay, str] = {}
        if self.command is not None:
            said["command"] = self.command[0] + (" …" if len(self.command) > 1 else "")
        if self.webhook is not None:
            url = urlsplit(self.webhook)
            port = f":{url.port}" if url.port else ""
            said["webhook"] = f"{url.scheme}://{url.hostname}{port}/…"
        if self.nats is not None:
            said["nats"] = self.nats
        return said

    def threshold(self, condition: AlertCondition) -> float | None:
        """At how much of a condition an alert is raised; ``None``: never."""
        match condition:
            case "dead_letter_depth":
                return None if self.dead_letters is None else float(self.dead_letters)
            case "dead_letter_age":
                return self.dead_letter_age
            case "deadline":
                return 1.0 if self.deadlines else None


def streams_of(namespace: str, owner: str | None) -> list[UUID]:
    """The streams of an owner's rule and of all alerts that there may be of it."""
    alerts = [alert_stream(namespace, owner, condition) for condition in CONDITIONS]
    return [alert_rule_stream(namespace, owner), *alerts]


Verb = Literal["raised", "repeated", "resolved", "test"]


def said(verb: Verb, condition: AlertCondition, owner: str | None, value: float) -> str:
    """A notice in a sentence, for whoever reads no JSON."""
    whose = f"of {owner}" if owner else "without an owner"
    match condition:
        case "dead_letter_depth":
            what = f"dead letters {whose}: {value:g}"
        case "dead_letter_age":
            what = f"the oldest dead letter {whose} is {value:.0f} s old"
        case "deadline":
            what = f"missed deadlines of work {whose}: {value:g}"
    if verb == "resolved":
        return f"over: {condition.replace('_', ' ')} {whose}"
    return f"test: {what}" if verb == "test" else what
