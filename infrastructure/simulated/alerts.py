"""Rules of alerts in memory. Nobody raises alerts in a simulation: there is nobody to tell."""

from collections.abc import Sequence

from horolog.application.alerting.rules import AlertRule, streams_of
from horolog.application.decision import Decision
from horolog.application.log import Recorded, Verdict
from horolog.domain.alert import AlertState
from horolog.domain.event import topics
from horolog.infrastructure.simulated.log import SimulatedLog


class SimulatedAlerts:
    """As :class:`horolog.application.alerting.ports.KeepsAlertRules` promises."""

    def __init__(self, log: SimulatedLog, namespace: str) -> None:
        self._namespace = namespace
        self._log = log
        self._rules: dict[str | None, AlertRule] = {}

    def set_rule(self, rule: AlertRule, decision: Decision, *, actor: str) -> Verdict:
        del actor
        verdict = self._log.append([decision]).verdicts[0]
        if verdict == "accepted":
            self._rules[rule.owner] = rule
        return verdict

    def remove_rule(self, owner: str | None, decision: Decision) -> Verdict:
        verdict = self._log.append([decision]).verdicts[0]
        if verdict == "accepted":
            self._rules.pop(owner, None)
        return verdict

    def rules(self) -> Sequence[AlertRule]:
        rules = self._rules.values()
        return sorted(rules, key=lambda one: (one.owner is not None, one.owner or ""))

    def alerts(self) -> Sequence[AlertState]:
        return []

    def history(self, owner: str | None, *, after: int, limit: int) -> Sequence[Recorded]:
        about = [topic for topic in topics() if topic.startswith(("alert.", "alert_rule."))]
        wanted = set(streams_of(self._namespace, owner))
        found = self._log.log(after=after, topics=about, limit=1_000_000)
        return [one for one in found if owner is None or one.stream in wanted][:limit]
