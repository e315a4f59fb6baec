"""Alerts at this machine: what their commands see of it, and a trial of a rule's ways."""

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from horolog.application.alerting.ports import NotDelivered
from horolog.application.alerting.rules import CONDITIONS, AlertRule, said
from horolog.application.answers.plain import plain
from horolog.domain.alert_events import AlertCondition, AlertWay
from horolog.domain.errors import QueueUnavailable
from horolog.infrastructure.alerts.delivering import Delivering
from horolog.infrastructure.alerts.subject import NatsSubjects
from horolog.interface.settings import Settings

TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether a way took the notice; ``error`` is empty where it did."""

    way: AlertWay
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return plain(self)


def try_rule(rule: AlertRule, settings: Settings) -> list[Trial]:
    """Tells every way of the rule that this is a test; nothing of it is in the log."""
    return asyncio.run(_try(rule, settings))


async def _try(rule: AlertRule, settings: Settings) -> list[Trial]:
    subjects = NatsSubjects(_nats_url(settings) if rule.nats else None, settings.namespace)
    delivering = Delivering(subjects, timeout_s=TIMEOUT_S, environment=environment_of_commands())
    trials: list[Trial] = []
    try:
        for way in rule.ways:
            try:
                await delivering.deliver(rule, way, notice_of_a_test(rule, settings.namespace))
            except NotDelivered as error:
                trials.append(Trial(way, str(error)))
            else:
                trials.append(Trial(way))
    finally:
        await subjects.close()
    return trials


def environment_of_commands() -> dict[str, str]:
    """What a command of an alert sees of this process's environment: not what it connects with."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HOROLOG_")}


def notice_of_a_test(rule: AlertRule, namespace: str) -> dict[str, Any]:
    """The document of a notice, with the first condition that the rule watches."""
    watched: list[AlertCondition] = [one for one in CONDITIONS if rule.threshold(one) is not None]
    value = rule.threshold(watched[0]) or 0.0
    now = datetime.now(UTC).isoformat()
    return {
        "id": f"test:{now}",
        "namespace": namespace,
        "state": "test",
        "condition": watched[0],
        "owner": rule.owner,
        "value": value,
        "threshold": value,
        "since": now,
        "at": now,
        "text": said("test", watched[0], rule.owner, value),
    }


def _nats_url(settings: Settings) -> str | None:
    try:
        return settings.nats_url()
    except QueueUnavailable:
        return None
