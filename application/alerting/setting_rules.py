"""Setting and removing rules of alerts: each is an event, in the rule's own stream.

The rule itself is kept beside the log, since it may hold a secret; both are written or neither.
"""

from uuid import UUID

from horolog.application.alerting.ports import KeepsAlertRules
from horolog.application.alerting.rules import AlertRule
from horolog.application.commands.context import MAX_TRIES, Context
from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.log import ReadsLog
from horolog.domain.alert_events import AlertEvent, AlertRuleRemoved, AlertRuleSet
from horolog.domain.errors import NotAllowed, VersionConflict
from horolog.domain.ids import alert_rule_stream

_PAGE = 1_000


def set_rule(
    context: Context, log: ReadsLog, keeper: KeepsAlertRules, rule: AlertRule, reason: str | None
) -> None:
    """Replaces the rule of its owner; the same rule again leaves no event."""
    if rule in keeper.rules():
        return
    event = AlertRuleSet(
        owner=rule.owner,
        dead_letters=rule.dead_letters,
        dead_letter_age=rule.dead_letter_age,
        deadlines=rule.deadlines,
        repeat=rule.repeat,
        ways=rule.shown(),
        **context.origin(reason).fields(),
    )
    for _ in range(MAX_TRIES):
        decision = _decision(context, log, rule.owner, event)
        if keeper.set_rule(rule, decision, actor=context.actor) == "accepted":
            return
    raise VersionConflict("others set this rule at the same time: try again")


def remove_rule(
    context: Context,
    log: ReadsLog,
    keeper: KeepsAlertRules,
    owner: str | None,
    reason: str | None,
) -> None:
    """Drops the rule of an owner (``None``: everybody's). ``NotAllowed`` where there is none."""
    rule_of_owner(keeper, owner)
    event = AlertRuleRemoved(owner=owner, **context.origin(reason).fields())
    for _ in range(MAX_TRIES):
        if keeper.remove_rule(owner, _decision(context, log, owner, event)) == "accepted":
            return
    raise VersionConflict("others set this rule at the same time: try again")


def rule_of_owner(keeper: KeepsAlertRules, owner: str | None) -> AlertRule:
    """The owner's own rule. ``NotAllowed`` where there is none."""
    for rule in keeper.rules():
        if rule.owner == owner:
            return rule
    whose = "that is everybody's" if owner is None else f"of {owner!r}"
    raise NotAllowed(f"there is no rule of alerts {whose}")


def _decision(context: Context, log: ReadsLog, owner: str | None, event: AlertEvent) -> Decision:
    stream = alert_rule_stream(context.namespace, owner)
    version = _version(log, stream) + 1
    return Decision(Guard("nothing", stream, 0), -1, [NewEvent(stream, version, event)])


def _version(log: ReadsLog, stream: UUID) -> int:
    version = 0
    while page := log.stream(stream, after=version, limit=_PAGE):
        version = page[-1].version
    return version
