"""Raising: what the rules ask is looked at, said once in the log, and told to whom it concerns.

Who leads the partition of an owner raises that owner's alerts: each event is appended under that
partition's fence, so two scanners never raise the same one, and workers are not needed. The log
comes first: a notice goes out only after its event, and what became of it is an event too. So a
scanner that dies in between leaves behind what its successor has to tell. A notice may go out twice
in that moment; whoever receives it tells copies by its ``id``.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from horolog.application.alerting.ports import DeliversNotices, NotDelivered, Seen, SeesAlerts
from horolog.application.alerting.rules import CONDITIONS, AlertRule, Verb, said
from horolog.application.decision import Decision, Guard, NewEvent
from horolog.application.scanner.claiming import Appends
from horolog.application.scanner.clock import Clock
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.territory import Territory
from horolog.domain.alert import AlertState, Breach, decide_alert, decide_delivery
from horolog.domain.alert_events import AlertCondition, AlertEvent, AlertWay
from horolog.domain.ids import alert_stream, partition_of
from horolog.domain.origin import Origin

log = logging.getLogger("horolog.scanner")

AT_ONCE = 16
"""Notices on their way at the same time."""


class Raising:
    """Raises, repeats and resolves alerts; one :meth:`step` is one look."""

    def __init__(
        self,
        territory: Territory,
        *,
        namespace: str,
        sees: SeesAlerts,
        delivers: DeliversNotices,
        appends: Appends,
        clock: Clock,
        settings: ScannerSettings,
        signals: Signals,
    ) -> None:
        self._territory = territory
        self._namespace = namespace
        self._sees = sees
        self._delivers = delivers
        self._appends = appends
        self._clock = clock
        self._settings = settings
        self._signals = signals
        self._origin = Origin(actor=f"scanner {territory.instance}")

    async def step(self) -> float:
        """Says what has changed, tells whom it concerns; seconds to the next look."""
        if not self._territory.trusted(self._clock.monotonic()):
            return min(self._settings.settle_s, self._settings.alert_interval_s)
        seen = await self._sees.seen()
        rules = {rule.owner: rule for rule in seen.rules}
        mine = [state for state in alerts_of(seen, self._namespace) if self._leads(state, seen)]
        if await self._say(mine, seen, rules):
            return 0.0  # what was just said is to be told
        await self._tell(mine, seen, rules)
        return self._settings.alert_interval_s

    def _leads(self, state: AlertState, seen: Seen) -> bool:
        trusted = self._territory.trusted(self._clock.monotonic())
        return partition_of(state.owner or "", seen.partitions) in trusted

    async def _say(
        self, alerts: list[AlertState], seen: Seen, rules: Mapping[str | None, AlertRule]
    ) -> int:
        """Appends what there is to say; how much of it the log took."""
        decisions: list[Decision] = []
        for state in alerts:
            rule = rule_of(state.owner, rules)
            events = decide_alert(
                state,
                breach_of(state.condition, state.owner, seen, rule),
                repeat_s=rule.repeat if rule else 0.0,
                ways=rule.ways if rule else [],
                now=seen.now,
                origin=self._origin,
            )
            decisions += [self._decision(state, event, seen) for event in events]
        taken = await self._append(decisions)
        for decision in taken:
            kind = decision.events[0].event.topic.split(".")[1]
            self._signals.emit(f"alert_{kind}")
        return len(taken)

    async def _tell(
        self, alerts: list[AlertState], seen: Seen, rules: Mapping[str | None, AlertRule]
    ) -> None:
        """Tells the ways that were not reached yet, and appends what became of it."""
        room = asyncio.Semaphore(AT_ONCE)

        async def tell(state: AlertState) -> list[AlertEvent]:
            rule = rule_of(state.owner, rules)
            events: list[AlertEvent] = []
            for way, tries in state.pending(seen.now):
                if rule is not None and way in rule.ways:
                    async with room:
                        events.append(await self._try(state, rule, way, tries + 1, seen.now))
            return events

        told = await asyncio.gather(*(tell(state) for state in alerts))
        decisions: list[Decision] = []
        for state, events in zip(alerts, told, strict=True):
            if events:
                decisions.append(self._decision(state, events[0], seen))
                decisions[-1].events.extend(
                    NewEvent(state.stream, state.version + number, event)
                    for number, event in enumerate(events[1:], 2)
                )
        await self._append(decisions)

    async def _try(
        self, state: AlertState, rule: AlertRule, way: AlertWay, tries: int, now: datetime
    ) -> AlertEvent:
        error = None
        try:
            await self._delivers.deliver(rule, way, notice_of(state, self._namespace))
            self._signals.emit("alert_delivered")
        except NotDelivered as failure:
            error = str(failure)
            self._signals.emit("alert_delivery_failed")
            log.warning(
                "the %s of %s does not take the alert %s (try %d): %s",
                way, state.owner or "everybody", state.condition, tries, error,
            )  # fmt: skip
        return decide_delivery(state, way, tries, error, now=now, origin=self._origin)

    def _decision(self, state: AlertState, event: AlertEvent, seen: Seen) -> Decision:
        partition = partition_of(state.owner or "", seen.partitions)
        new = NewEvent(state.stream, state.version + 1, event)
        return Decision(Guard("nothing", state.stream, 0), partition, [new])

    async def _append(self, decisions: list[Decision]) -> list[Decision]:
        """Those that the log accepted. A partition that was lost meanwhile refuses its own, and its
        new leader says what there is to say."""
        tokens = self._territory.trusted(self._clock.monotonic())
        mine = [decision for decision in decisions if decision.partition in tokens]
        if not mine:
            return []
        fences = self._territory.fences({d.partition: tokens[d.partition] for d in mine})
        appended = await self._appends.append(mine, fences)
        return [d for d, v in zip(mine, appended.verdicts, strict=True) if v == "accepted"]


def rule_of(owner: str | None, rules: Mapping[str | None, AlertRule]) -> AlertRule | None:
    """An owner's own rule, or everybody's."""
    return rules.get(owner) or rules.get(None)


def alerts_of(seen: Seen, namespace: str) -> Iterator[AlertState]:
    """Every alert that was raised before, or that there is something to say about now."""
    yield from seen.alerts.values()
    owners = {letters.owner for letters in seen.letters} | set(seen.late)
    for owner in sorted(owners, key=lambda one: (one is not None, one or "")):
        for condition in CONDITIONS:
            stream = alert_stream(namespace, owner, condition)
            if stream not in seen.alerts:
                yield AlertState(stream, condition, owner)


def breach_of(
    condition: AlertCondition, owner: str | None, seen: Seen, rule: AlertRule | None
) -> Breach | None:
    """Whether a condition holds, by its rule; without a rule nothing does."""
    threshold = None if rule is None else rule.threshold(condition)
    if threshold is None:
        return None
    value = _VALUES[condition](owner, seen)
    return Breach(value, threshold) if value >= threshold else None


def _depth(owner: str | None, seen: Seen) -> float:
    return float(sum(letters.depth for letters in seen.letters if letters.owner == owner))


def _age(owner: str | None, seen: Seen) -> float:
    oldest = [letters.oldest for letters in seen.letters if letters.owner == owner]
    return round(max(((seen.now - at).total_seconds() for at in oldest), default=0.0), 3)


def _late(owner: str | None, seen: Seen) -> float:
    return float(seen.late.get(owner, 0))


_VALUES: dict[AlertCondition, Callable[[str | None, Seen], float]] = {
    "dead_letter_depth": _depth,
    "dead_letter_age": _age,
    "deadline": _late,
}


def notice_of(state: AlertState, namespace: str) -> dict[str, Any]:
    """What is told: a JSON document. ``id`` is the same for every copy of one notice."""
    assert state.noticed_at is not None
    assert state.since is not None
    verb: Verb = "resolved"
    if state.is_open:
        verb = "raised" if state.since == state.noticed_at else "repeated"
    return {
        "id": f"{state.stream}:{state.notice}",
        "namespace": namespace,
        "state": verb,
        "condition": state.condition,
        "owner": state.owner,
        "value": state.value,
        "threshold": state.threshold,
        "since": state.since.isoformat(),
        "at": state.noticed_at.isoformat(),
        "text": said(verb, state.condition, state.owner, state.value),
    }
