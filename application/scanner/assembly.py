"""The scanner put together from its parts, over whatever adapters it is given.

The one place that knows how the parts share their state; the process wires real servers here, a
simulation its own.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Protocol

from horolog.application.alerting.ports import DeliversNotices, SeesAlerts
from horolog.application.alerting.raising import Raising
from horolog.application.measuring import UNMEASURED, Measures
from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.claiming import Appends, Claiming, ReadsDueRows
from horolog.application.scanner.clock import Clock, DatabaseTime
from horolog.application.scanner.headroom import Gauging, Headroom, SeesDepths
from horolog.application.scanner.lanes import WaitingLanes
from horolog.application.scanner.leadership import KeepsLeases, Leadership
from horolog.application.scanner.looking import Extends, Looking, SeesQueue
from horolog.application.scanner.news import HearsNews
from horolog.application.scanner.outbox import Outbox
from horolog.application.scanner.progress import Progress
from horolog.application.scanner.publishing import MarksPublished, Publishing
from horolog.application.scanner.reading import Reading
from horolog.application.scanner.receiving import DrainsInbox, Receiving
from horolog.application.scanner.republishing import Republishing
from horolog.application.scanner.scanner import Parts, Scanner
from horolog.application.scanner.sent import SentMessages
from horolog.application.scanner.serving import ReadsLanes, Serving
from horolog.application.scanner.settings import ScannerSettings
from horolog.application.scanner.signals import Signals
from horolog.application.scanner.sweep import ReadsIndex, Sweep
from horolog.application.scanner.territory import Territory
from horolog.application.scanner.traced_claims import TracedClaims
from horolog.application.scanner.watching import ReadsMisses, Watching
from horolog.application.scanner.wheel import Wheel
from horolog.application.tracing import UNTRACED, FindsOrders, RunTraces, Spans


class Index(ReadsIndex, Extends, ReadsDueRows, ReadsLanes, Protocol):
    """The next-run index, in all its uses."""


class Queue(SeesQueue, SeesDepths, Protocol):
    """The ready queue."""


class Leases(KeepsLeases, MarksPublished, Protocol):
    """Leases and publishing positions."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """What a scanner works on. ``log`` and ``elections`` may be one; with two, a renewal does not
    wait for a batch of claims. ``orders`` is asked only where somebody traces."""

    log: Appends
    elections: Appends
    index: Index
    looks: Index
    leases: Leases
    queue: Queue
    news: HearsNews
    misses: ReadsMisses
    alerts: SeesAlerts
    notices: DeliversNotices
    inbox: DrainsInbox
    clock: Clock
    orders: FindsOrders | None = None


def assemble(
    instance: str,
    adapters: Adapters,
    settings: ScannerSettings,
    signals: Signals | None = None,
    *,
    namespace: str = "horolog",
    measures: Measures = UNMEASURED,
    spans: Spans = UNTRACED,
) -> Scanner:
    """A scanner that is ready to run."""
    signals = signals or Signals()
    clock = adapters.clock
    time = DatabaseTime(clock)
    territory = Territory(instance)
    wheel = Wheel(tick_us=round(settings.tick_s * 1e6), capacity=settings.wheel_capacity)
    headroom = Headroom(settings, clock)
    agenda = Agenda(wheel, room=headroom.room, capacity=settings.due_capacity)
    lanes = WaitingLanes()
    progress = Progress()
    traces = RunTraces()
    outbox = Outbox(settings, progress, traces)
    appends = adapters.log
    if spans.tracing and adapters.orders is not None:
        appends = TracedClaims(appends, spans, adapters.orders, traces)
    gauging = Gauging(headroom, outbox.unpublished, queue=adapters.queue)
    sent = SentMessages()
    looking_at = Reading(adapters.looks, time, signals)
    details: MutableMapping[str, object] = {}
    # In this order they hear of partitions gained and lost.
    republishing = Republishing(
        territory, outbox, progress, sent,
        index=adapters.looks, rows=looking_at, signals=signals,
    )  # fmt: skip
    sweep = Sweep(
        territory, agenda,
        index=adapters.index, clock=clock, time=time, settings=settings, signals=signals,
    )  # fmt: skip
    serving = Serving(
        territory, agenda, lanes, index=adapters.index, clock=clock, signals=signals,
    )  # fmt: skip
    claiming = Claiming(
        territory, agenda, outbox, progress, serving, headroom,
        rows=adapters.index, reading=Reading(adapters.index, time, signals), appends=appends,
        clock=clock, time=time, settings=settings, signals=signals,
    )  # fmt: skip
    publishing = Publishing(
        territory, outbox, progress, sent, republishing, headroom,
        queue=adapters.queue, marks=adapters.leases,
        clock=clock, settings=settings, signals=signals, measures=measures,
        spans=spans,
    )  # fmt: skip
    looking = Looking(
        territory, outbox, sent, claiming, republishing,
        queue=adapters.queue, index=adapters.looks, rows=looking_at,
        clock=clock, time=time, settings=settings, signals=signals,
    )  # fmt: skip
    leadership = Leadership(
        territory,
        leases=adapters.leases, log=adapters.elections,
        clock=clock, time=time, settings=settings, signals=signals, details=details,
    )  # fmt: skip
    watching = Watching(
        territory,
        misses=adapters.misses, appends=adapters.log,
        clock=clock, settings=settings, signals=signals,
    )  # fmt: skip
    raising = Raising(
        territory,
        namespace=namespace, sees=adapters.alerts, delivers=adapters.notices,
        appends=adapters.log, clock=clock, settings=settings, signals=signals,
    )  # fmt: skip
    receiving = Receiving(territory, inbox=adapters.inbox, settings=settings, signals=signals)
    parts = Parts(
        territory, agenda, outbox, leadership, sweep, claiming, publishing, republishing, looking,
        serving, lanes, gauging, headroom, watching, raising, receiving,
    )  # fmt: skip
    return Scanner(parts, adapters.news, clock, settings, signals, details)
