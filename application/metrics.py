"""What there is to see of a namespace as Prometheus' text: pure, from the same looks as the doctor.

No server and no state: `horolog metrics` prints it, for a node exporter's text collector, a cron
job or a sidecar. All counts are bounded as the looks are. Names end in their unit; what only grows
ends in ``_total``.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from horolog.application.health import Lateness, QueueHealth, StoreHealth
from horolog.application.measuring import labels_text

Labels = Mapping[str, str]
_Sample = tuple[Labels, float]

_SCANNER = {
    "wheel": ("wheel_entries", "Entries in the time wheel."),
    "waiting": ("due_entries", "Due and not claimed, as the scanner knows it."),
    "held_back": ("held_back_entries", "Of these, held back until a ready queue is emptied."),
    "unpublished": ("unpublished_runs", "Claimed and not known to be in the ready queue."),
    "full_lanes": ("full_lanes", "Lanes that somebody waits for."),
    "partitions": ("leases", "Partitions that it leads."),
    "lateness_s": ("claim_lateness_seconds", "How late the oldest of its last batch was."),
}


def metrics(store: StoreHealth | None, queue: QueueHealth | None) -> str:
    """The text; of a service that is away only that it is."""
    lines: list[str] = []
    up: list[_Sample] = [
        ({"service": "postgres"}, float(store is not None)),
        ({"service": "nats"}, float(queue is not None)),
    ]
    families = [("up", "gauge", "Whether the service answered.", up)]
    families += [] if store is None else [*_store(store), *_scanners(store), *_counters(store)]
    families += [] if queue is None else list(_queue(queue))
    for name, kind, text, samples in families:
        lines.append(f"# HELP horolog_{name} {text}")
        lines.append(f"# TYPE horolog_{name} {kind}")
        lines += [
            f"horolog_{name}{labels_text(tuple(labels.items()))} {_number(value)}"
            for labels, value in samples
        ]
    return "\n".join(lines) + "\n"


_Family = tuple[str, str, str, list[_Sample]]


def _store(store: StoreHealth) -> Iterator[_Family]:
    yield _one("log_position", "The position that the log has reached.", store.position)
    yield _one(
        "clock_offset_seconds", "How far the database's clock is ahead.", store.clock_offset_s
    )
    yield _one("round_trip_seconds", "A round trip to Postgres.", store.round_trip_s)
    yield _by("jobs", "Jobs by status.", "status", store.jobs)
    yield (
        "lateness_seconds",
        "gauge",
        "From the nominal fire time to the claim and to the start of the handler, of late.",
        [*_quantiles("claim", store.claims_late), *_quantiles("start", store.starts_late)],
    )
    counts: list[_Sample] = [
        ({"stage": "claim"}, store.claims_late.count),
        ({"stage": "start"}, store.starts_late.count),
    ]
    yield "lateness_samples", "gauge", "How many fires these speak of.", counts
    yield _one("backlog_fires", "Fires that are due and not claimed.", store.late_fires)
    yield _one(
        "backlog_oldest_seconds", "How long ago the oldest of them was due.", store.lateness_s
    )
    yield _one("slot_waits", "Fires that wait for a slot of a full lane.", store.slot_waits)
    yield _one("slots_taken", "Slots of lanes that are in use.", store.slots_taken)
    yield _one("inbox_waiting", "Committed commands not carried out.", store.inbox_waiting)
    yield _one("inbox_oldest_seconds", "How long ago the oldest was given.", store.inbox_oldest_s)
    yield _one(
        "inbox_set_aside", "Commands that were refused after the commit.", store.inbox_refused
    )
    yield _one("unpublished_claims", "Claims not known to be in the queue.", store.unpublished)
    yield _one("overdue_looks", "Claims and attempts that nobody looked at.", store.overdue_looks)
    yield _one("partitions", "Partitions.", store.partitions)
    yield _one("partitions_unowned", "Partitions without a leader.", store.unowned)
    yield _by("leases_held", "Partitions by leader.", "instance", store.leaders)
    alive: dict[str, int] = {"scanner": 0, "worker": 0}
    for instance in store.instances:
        if instance.alive:
            alive[instance.role] = alive.get(instance.role, 0) + 1
    yield _by("instances", "Living processes by role.", "role", alive)
    waiting: list[_Sample] = [
        ({"name": one.name, "queue": one.queue, "state": one.state}, one.count)
        for one in store.waiting
    ]
    yield "unfinished_occurrences", "gauge", "Unfinished occurrences.", waiting
    letters: list[_Sample] = [({"owner": one.owner or ""}, one.depth) for one in store.dead_letters]
    yield "dead_letters", "gauge", "Dead letters by owner.", letters
    alerts: list[_Sample] = [
        ({"owner": one.owner or "", "condition": one.condition}, 1) for one in store.alerts
    ]
    yield "alerts", "gauge", "Alerts that hold, by owner and condition.", alerts
    failing = sum(len(one.unreached) for one in store.alerts)
    yield _one("alert_ways_unreached", "Ways that did not take their last notice.", failing)
    lags: list[_Sample] = [({"follower": one.name}, one.lag) for one in store.followers]
    yield "follower_lag", "gauge", "Positions that a follower is behind the log.", lags


def _scanners(store: StoreHealth) -> Iterator[_Family]:
    scanners = store.alive("scanner")
    for key, (name, text) in _SCANNER.items():
        samples: list[_Sample] = [
            ({"instance": one.instance}, float(value))
            for one in scanners
            if isinstance(value := one.details.get(key), int | float)
        ]
        yield f"scanner_{name}", "gauge", text, samples
    events: list[_Sample] = []
    for one in scanners:
        counts = one.details.get("counts")
        if isinstance(counts, dict):
            events += [
                ({"instance": one.instance, "event": str(event)}, float(count))
                for event, count in sorted(cast("dict[object, int]", counts).items(), key=str)
            ]
    yield "scanner_events_total", "counter", "What the scanner did, since its start.", events


def _counters(store: StoreHealth) -> Iterator[_Family]:
    for name, value in sorted(store.counters.items()):
        yield f"{name}_total", "counter", name.replace("_", " ").capitalize() + ".", [({}, value)]


def _queue(queue: QueueHealth) -> Iterator[_Family]:
    yield _one("stream_messages", "Messages in the ready stream.", queue.messages)
    yield _one("stream_bytes", "Their size.", queue.bytes)
    yield _one("stream_max_messages", "How many it takes.", queue.max_messages)
    depths = queue.queues
    for name, text, values in (
        ("waiting", "Messages that wait for a worker.", [one.waiting for one in depths]),
        ("held", "Messages that workers hold.", [one.held for one in depths]),
        ("redelivered", "Messages delivered again.", [one.redelivered for one in depths]),
    ):
        samples: list[_Sample] = [
            ({"queue": one.queue}, value) for one, value in zip(depths, values, strict=True)
        ]
        yield f"queue_{name}", "gauge", text, samples


def _one(name: str, text: str, value: float) -> _Family:
    return name, "gauge", text, [({}, value)]


def _by(name: str, text: str, label: str, values: Mapping[str, int]) -> _Family:
    return name, "gauge", text, [({label: key}, value) for key, value in sorted(values.items())]


def _quantiles(stage: str, late: Lateness) -> list[_Sample]:
    if not late.count:
        return []
    values = {"0.5": late.p50_s, "0.99": late.p99_s, "1": late.worst_s}
    return [({"stage": stage, "quantile": quantile}, v) for quantile, v in values.items()]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
