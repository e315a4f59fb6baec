"""The limits of queues, and the alerts of owners."""

from collections.abc import Sequence

from horolog.application.alerting import setting_rules
from horolog.application.alerting.rules import AlertRule
from horolog.application.answers.alert import Alert, WatchedOwner
from horolog.application.answers.limited_queue import LimitedQueue
from horolog.application.answers.logged_event import LoggedEvent
from horolog.application.commands import (
    limiting_queues,
)
from horolog.application.queries.limit import DEFAULT_LIMIT, checked_limit
from horolog.interface.client.connected import Connected
from horolog.interface.filters import (
    chosen_place,
    chosen_text,
)


class Watching(Connected):
    """Sets and shows limits and alerts."""

    def limit_queue(
        self, queue: str, *, limit: int | None = None, rate: float | None = None
    ) -> None:
        """At most ``limit`` runs of a queue at once and ``rate`` a second, over all machines.

        With neither, the queue has no limits any more. Claims decided from now on keep to it.
        Raises ``InvalidPolicy``.
        """
        client = self._connected().of_one_log("a rule of alerts or the limit of a queue")
        limiting_queues.limit_queue(
            client.queues, queue, limit=limit, rate=rate, actor=client.context.actor
        )

    def limited_queues(self) -> list[LimitedQueue]:
        """The queues that have limits, with what is in use and what waits."""
        return list(self._connected().of_one_log("a limit of a queue").queues.limited_queues())

    def set_alert(
        self,
        owner: str | None = None,
        *,
        dead_letters: int | None = None,
        dead_letter_age: float | None = None,
        deadlines: bool = False,
        repeat: float = 3600.0,
        command: Sequence[str] | None = None,
        webhook: str | None = None,
        nats: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Says what is too much for an owner, and whom to tell; replaces the owner's rule.

        Without ``owner`` it is the rule of everybody who has none of their own, and of what has no
        owner. Scanners raise an alert from so many ``dead_letters`` on, from a dead letter of
        ``dead_letter_age`` seconds on, or when one of the ``deadlines`` of a job is missed; they
        tell it again every ``repeat`` seconds while it lasts, and when it is over. ``command`` is
        a program and its arguments (run without a shell, the notice as JSON on its input),
        ``webhook`` a URL that gets it by POST, ``nats`` a subject. Raises ``InvalidPolicy``.
        """
        rule = AlertRule.checked(
            owner,
            dead_letters=dead_letters,
            dead_letter_age=dead_letter_age,
            deadlines=deadlines,
            repeat=repeat,
            command=command,
            webhook=webhook,
            nats=nats,
        )
        client = self._connected().of_one_log("a rule of alerts or the limit of a queue")
        setting_rules.set_rule(client.context, client.log, client.alerts, rule, reason)

    def remove_alert(self, owner: str | None = None, *, reason: str | None = None) -> None:
        """Removes the rule of an owner, or everybody's; what it raised is resolved.

        Raises ``NotAllowed`` where there is none.
        """
        client = self._connected().of_one_log("a rule of alerts or the limit of a queue")
        setting_rules.remove_rule(client.context, client.log, client.alerts, owner, reason)

    def alert_rules(self) -> list[WatchedOwner]:
        """The rules of alerts, without what may be a secret in them."""
        return [
            WatchedOwner.of(rule) for rule in self._connected().of_one_log("alerts").alerts.rules()
        ]

    def alert_rule(self, owner: str | None = None) -> AlertRule:
        """One rule with all that it holds, secrets too. Raises ``NotAllowed`` where there is
        none."""
        return setting_rules.rule_of_owner(self._connected().of_one_log("alerts").alerts, owner)

    def alerts(self) -> list[Alert]:
        """The alerts that hold now, as the log has them."""
        return [
            Alert.of(state)
            for state in self._connected().of_one_log("alerts").alerts.alerts()
            if state.is_open
        ]

    def alert_history(
        self, *, owner: str | None = None, after: int = 0, limit: int = DEFAULT_LIMIT
    ) -> list[LoggedEvent]:
        """The events of alerts and of their rules, oldest first; ``after`` is a position."""
        found = (
            self._connected()
            .of_one_log("alerts")
            .alerts.history(
                chosen_text("owner", owner), after=chosen_place(after), limit=checked_limit(limit)
            )
        )
        return [LoggedEvent.of(recorded) for recorded in found]
