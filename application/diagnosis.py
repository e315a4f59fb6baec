"""From what is to be seen to what needs attention: pure, so that each rule has its test.

A finding that needs attention says what to do. What heals by itself within seconds (a takeover, a
retry) is told and needs none.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from shlex import quote
from typing import cast

from horolog.application.health import COUNT_LIMIT, QueueHealth, StoreHealth

LATE_S = 5.0
"""Fires this late are worth a look: a takeover after a crash takes about as long."""

CLOCK_S = 1.0
"""Clocks this far apart are worth a look. Decisions use the database's clock, so nothing breaks."""

STUCK_S = 60.0
"""Claimed or running, and this long past the moment at which somebody should have looked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``do`` is what a person has to do; empty where nothing has to be done."""

    what: str
    do: str = ""

    @property
    def needs_attention(self) -> bool:
        return bool(self.do)


def findings(
    store: StoreHealth | None,
    queue: QueueHealth | None,
    *,
    store_error: str = "",
    queue_error: str = "",
) -> list[Finding]:
    """Everything worth saying; ``None`` and an error for a service that cannot be looked at."""
    if store is None:
        found = [Finding(f"the log cannot be read: {store_error}", "nothing works until it can be")]
    else:
        found = list(_store(store))
    if queue is None:
        found.append(
            Finding(
                f"NATS is away: {queue_error}",
                "start NATS or correct HOROLOG_NATS_URL; until then nothing is lost, only late",
            )
        )
    else:
        found.extend(_queue(queue))
    return found


def _store(store: StoreHealth) -> Iterator[Finding]:
    yield from _processes(store)
    yield from _releases(store)
    yield from _lateness(store)
    yield from _handlers(store)
    if abs(store.clock_offset_s) > CLOCK_S + store.round_trip_s:
        side = "behind" if store.clock_offset_s > 0 else "ahead of"
        yield Finding(
            f"this machine's clock is {abs(store.clock_offset_s):.1f} s {side} the database's",
            "synchronise both by NTP; fire times follow the database's clock",
        )
    for lack in store.lacking_grants:
        yield Finding(
            f"a role has not what its processes need: {lack}",
            "run horolog roles --apply as the owner of the schema",
        )
    for letters in store.dead_letters:
        owner = f"of {letters.owner}" if letters.owner else "without an owner"
        option = f" --owner {quote(letters.owner)}" if letters.owner else ""
        yield Finding(
            f"dead letters {owner}: {_count(letters.depth)}, the oldest since"
            f" {letters.oldest.isoformat(timespec='seconds')}",
            f"horolog dead-letters list{option}, then replay or discard",
        )
    for alert in store.alerts:
        whose = f"of {alert.owner}" if alert.owner else "of work without an owner"
        failed = f"; not told: {', '.join(alert.unreached)}" if alert.unreached else ""
        yield Finding(
            f"alert {whose} since {alert.since.isoformat(timespec='seconds')}:"
            f" {alert.condition.replace('_', ' ')} {alert.value:g}, threshold"
            f" {alert.threshold:g}{failed}",
            "horolog alert list; it is over by itself when the condition is",
        )
    if store.missed_deadlines:
        yield Finding(
            f"deadlines missed in the last 24 hours: {_count(store.missed_deadlines)}",
            "horolog log --topic deadline.missed.1 says which",
        )
    if store.inbox_refused:
        yield Finding(
            f"commands of clients' transactions set aside: {_count(store.inbox_refused)}",
            "horolog inbox list --refused, then retry or discard",
        )
    if store.inbox_oldest_s > LATE_S:
        yield Finding(
            f"commands of clients' transactions wait: {_count(store.inbox_waiting)}, the oldest for"
            f" {store.inbox_oldest_s:.0f} s",
            "" if store.alive("scanner") else "run horolog scanner",
        )
    for follower in store.followers:
        if follower.lag:
            yield Finding(f"follower {follower.name} is {follower.lag} positions behind the log")


def _processes(store: StoreHealth) -> Iterator[Finding]:
    scanners = store.alive("scanner")
    wanted = store.jobs.get("active", 0) > 0 or bool(store.waiting)
    if not scanners and wanted:
        yield Finding("no scanner is alive: nothing fires", "run horolog scanner")
    elif store.unowned and scanners:
        yield Finding(
            f"{store.unowned} of {store.partitions} partitions have no leader",
            "wait for one lease; if it stays so, read the scanners' output",
        )
    for scanner in scanners:
        if problem := scanner.details.get("queue_away"):
            yield Finding(
                f"scanner {scanner.instance} cannot publish: {problem}",
                "see whether NATS runs, answers that machine and has room",
            )
    if not store.alive("worker") and any(one.state == "claimed" for one in store.waiting):
        yield Finding(
            "no worker is alive: what is claimed waits", "run horolog worker module:worker"
        )


def _releases(store: StoreHealth) -> Iterator[Finding]:
    """Two releases side by side are well for as long as an upgrade takes."""
    if store.schema > store.schema_of_code:
        yield Finding(
            f"the schema is of a newer release (migration {store.schema}) than this code"
            f" (migration {store.schema_of_code}); it admits it"
        )
    for one in store.instances:
        known = one.details.get("schema")
        if one.alive and isinstance(known, int) and known < store.schema:
            yield Finding(
                f"{one.role} {one.instance} is of an older release: it knows migration {known},"
                f" the schema has {store.schema}"
            )


def _lateness(store: StoreHealth) -> Iterator[Finding]:
    if store.late_fires and store.lateness_s > LATE_S:
        yield Finding(
            f"late fires: {_count(store.late_fires)}, the oldest by {store.lateness_s:.0f} s",
            "see whether the scanners are alive and NATS answers; add scanners if it grows",
        )
    if store.overdue_looks:
        yield Finding(
            f"claims or attempts past their window or lease by more than {STUCK_S:.0f} s, at which"
            f" nobody has looked: {_count(store.overdue_looks)}",
            "see whether a scanner leads their partitions",
        )
    if store.slot_waits:
        yield Finding(f"fires that wait for a slot of a full lane: {_count(store.slot_waits)}")
    for scanner in store.alive("scanner"):
        held, full = scanner.details.get("held_back"), scanner.details.get("full_queues")
        if isinstance(held, int) and held and isinstance(full, list) and full:
            names = ", ".join(str(name) for name in cast("list[object]", full))
            yield Finding(
                f"scanner {scanner.instance} holds back {held} due fires: the workers of {names}"
                " have enough for now"
            )
    for scanner in store.alive("scanner"):
        if scanner.details.get("unpublished_grows") is True:
            yield Finding(
                f"scanner {scanner.instance} claims faster than the ready queue takes it:"
                f" {scanner.details.get('unpublished')} claims unpublished, more with each renewal",
                "see whether NATS answers, keeps up with its disk, and is not full; claiming stops"
                " at max_unpublished, and goes on by itself",
            )
    if store.unpublished:
        yield Finding(f"claims not known to be in the queue yet: {_count(store.unpublished)}")


def _handlers(store: StoreHealth) -> Iterator[Finding]:
    """Occurrences that no living worker has a handler for: they wait, and somebody has to know."""
    workers = store.alive("worker")
    for worker in workers:
        if worker.handlers == []:
            yield Finding(
                f"worker {worker.instance} has no handler: it can run nothing",
                "name the module whose worker has the handlers, or import them there",
            )
    if not workers or any(worker.handlers is None for worker in workers):
        return
    handled = {name for worker in workers for name in worker.handlers or ()}
    waiting: dict[str, int] = {}
    for one in store.waiting:
        if one.state in ("claimed", "retrying") and one.name not in handled:
            waiting[one.name] = waiting.get(one.name, 0) + one.count
    for name, count in waiting.items():
        yield Finding(
            f"waiting for handler {name!r}, which no living worker has: {_count(count)}",
            f"run a worker that handles {name!r}, or cancel the job{_near(name, handled)}",
        )


def _near(name: str, handled: Iterable[str]) -> str:
    found = get_close_matches(name, sorted(handled), 1)
    return f"; or was {found[0]!r} meant, which one has?" if found else ""


def _queue(queue: QueueHealth) -> Iterator[Finding]:
    if not queue.stream:
        yield Finding("the ready stream does not exist yet: a scanner makes it")
    elif queue.max_messages > 0 and queue.messages >= 0.9 * queue.max_messages:
        yield Finding(
            f"the ready stream is nearly full: {queue.messages} of {queue.max_messages} messages",
            "add workers; claiming pauses at the bound and nothing is lost",
        )
    for one in queue.queues:
        if 0 < one.most_held <= one.held:
            yield Finding(
                f"queue {one.queue} hands out nothing more: its workers hold {one.held} messages,"
                " as many as they may",
                "see what hangs (horolog occurrence list --state running); give jobs a timeout",
            )


def _count(number: int) -> str:
    return f"{number} or more" if number >= COUNT_LIMIT else str(number)
