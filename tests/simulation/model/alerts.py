"""Alerts are raised and resolved in turn, told once where nothing broke, and true in the end."""

from datetime import timedelta
from uuid import UUID

from tests.simulation.model.account import Account

from horolog.domain.alert import MAX_TRIES, AlertState

NOTICES = frozenset({"raised", "repeated", "resolved"})


def check_alerts(account: Account) -> None:
    """Raised and resolved in turn, told once where nothing broke, and true in the end."""
    world, tempo = account.world, account.world.plan.tempo
    open_: dict[UUID, bool] = {}
    for event in account.events:
        if account.about[event.position] == "alert" and event.kind in NOTICES:
            wanted = event.kind != "raised"
            if open_.get(event.stream, False) is not wanted:
                account.say(f"alert {event.stream} was {event.kind} and is open: {not wanted}")
            open_[event.stream] = event.kind != "resolved"
            told = world.watchfulness.told[f"{event.stream}:{event.version}"]
            if told > 1 and not account.troubled and not _killed(account):
                account.say(f"notice {event.version} of {event.stream} was told {told} times")
    rule = world.watchfulness.rule
    for state in world.watchfulness.alerts():
        _check_notice(account, state, timedelta(seconds=40.0 * tempo))
        if state.condition == "dead_letter_depth":
            holds = len(world.log.tables.dead_letters) >= (rule.dead_letters or 0)
            if state.is_open is not holds:
                account.say(f"the alert on dead letters is open: {state.is_open}, and not {holds}")


def _check_notice(account: Account, state: AlertState, soon: timedelta) -> None:
    """The last notice was told, or refused so far; then it is tried again soon, to a bound."""
    notice = f"notice {state.notice} of {state.stream}"
    if account.world.watchfulness.told[f"{state.stream}:{state.notice}"]:
        return
    for way in state.wanted:
        tries, again = state.failed.get(way, (0, state.noticed_at))
        if again is None and tries < MAX_TRIES:
            account.say(f"{notice} was given up after {tries} tries")
        if again is not None and account.world.now() - again > soon:
            account.say(f"{notice} was never told: {tries} tries, the next was due at {again}")


def _killed(account: Account) -> bool:
    """Whether a scanner ended in the middle of something."""
    return any(
        name.startswith("scanner") and machine.troubled_at
        for name, machine in account.world.lives.items()
    )
