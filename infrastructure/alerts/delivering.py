"""A notice to one of the ways of a rule, within a time that is bounded for all of them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from horolog.application.alerting.ports import NotDelivered
from horolog.application.alerting.rules import AlertRule
from horolog.domain.alert_events import AlertWay
from horolog.infrastructure.alerts.command import run_command
from horolog.infrastructure.alerts.subject import NatsSubjects
from horolog.infrastructure.alerts.webhook import post


class Delivering:
    """As :class:`horolog.application.alerting.ports.DeliversNotices` promises.

    ``environment`` is what a command sees; ``commands`` is whether this machine runs any: whoever
    may write to the database could have it run what they like.
    """

    def __init__(
        self,
        subjects: NatsSubjects,
        *,
        timeout_s: float,
        environment: Mapping[str, str],
        commands: bool = True,
    ) -> None:
        self._subjects = subjects
        self._timeout_s = timeout_s
        self._environment = dict(environment)
        self._commands = commands

    async def deliver(self, rule: AlertRule, way: AlertWay, notice: Mapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._deliver(rule, way, notice)
        except TimeoutError as error:
            raise NotDelivered(f"it took longer than {self._timeout_s:g} s") from error

    async def _deliver(self, rule: AlertRule, way: AlertWay, notice: Mapping[str, Any]) -> None:
        if way == "command" and rule.command is not None:
            if not self._commands:
                raise NotDelivered("this scanner runs no commands (its setting alert_commands)")
            await run_command(rule.command, notice, self._environment)
        elif way == "webhook" and rule.webhook is not None:
            await post(rule.webhook, notice)
        elif way == "nats" and rule.nats is not None:
            await self._subjects.publish(rule.nats, notice)
