"""Metrics as Prometheus' text: complete, well formed, and bounded by what was looked at."""

import re
from dataclasses import replace
from datetime import UTC, datetime

from horolog.application.health import (
    DeadLetterDepth,
    Follower,
    Instance,
    Lateness,
    QueueDepth,
    QueueHealth,
    StoreHealth,
    Waiting,
)
from horolog.application.metrics import metrics

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SCANNER = Instance(
    "host:1",
    "scanner",
    NOW,
    True,
    details={
        "partitions": 64,
        "wheel": 7,
        "held_back": 3,
        "lateness_s": 0.0125,
        "counts": {"claimed": 41, "full": 2},
        "queue_away": "",
    },
)
STORE = StoreHealth(
    server="18.6",
    schema=7,
    schema_of_code=7,
    clock_offset_s=-0.001,
    round_trip_s=0.0005,
    position=1_000,
    jobs={"active": 3},
    late_fires=5,
    lateness_s=1.5,
    overdue_looks=0,
    partitions=64,
    unowned=1,
    leaders={"host:1": 63},
    unpublished=2,
    instances=[SCANNER, Instance("w", "worker", NOW, False)],
    dead_letters=[DeadLetterDepth('bill"ing\n', 4, NOW)],
    waiting=[Waiting("a.b", "default", "running", 9, 0.0)],
    followers=[Follower("mirror", 900, 100)],
    counters={"stale_claims_refused": 6},
    claims_late=Lateness(100, 0.002, 0.01, 0.5),
    slot_waits=8,
    slots_taken=3,
)
QUEUE = QueueHealth("2.15.1", True, 10, 2_000, 500_000, [QueueDepth("default", 10, 4, 1)])

SAMPLE = re.compile(
    r'[a-z_]+(\{[a-z]+="(\\.|[^"\\\n])*"(,[a-z]+="(\\.|[^"\\\n])*")*\})? -?[0-9.e-]+'
)


def test_everything_is_a_sample_of_a_family_that_was_named_before() -> None:
    family = ""
    for line in metrics(STORE, QUEUE).splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
        elif not line.startswith("# TYPE "):
            assert SAMPLE.fullmatch(line), line
            assert re.split(r"[{ ]", line)[0] == family, line


def test_lateness_backlog_lanes_leases_and_queues_are_told() -> None:
    lines = set(metrics(STORE, QUEUE).splitlines())
    assert {
        'horolog_lateness_seconds{stage="claim",quantile="0.99"} 0.01',
        'horolog_lateness_samples{stage="start"} 0',
        "horolog_backlog_fires 5",
        "horolog_backlog_oldest_seconds 1.5",
        "horolog_unpublished_claims 2",
        "horolog_slot_waits 8",
        "horolog_slots_taken 3",
        'horolog_leases_held{instance="host:1"} 63',
        'horolog_scanner_wheel_entries{instance="host:1"} 7',
        'horolog_scanner_held_back_entries{instance="host:1"} 3',
        'horolog_scanner_events_total{instance="host:1",event="claimed"} 41',
        'horolog_instances{role="worker"} 0',
        'horolog_queue_waiting{queue="default"} 10',
        'horolog_dead_letters{owner="bill\\"ing\\n"} 4',
        "horolog_stale_claims_refused_total 6",
        'horolog_up{service="nats"} 1',
    } <= lines


def test_of_a_service_that_is_away_only_that_is_told() -> None:
    text = metrics(None, QUEUE)
    assert 'horolog_up{service="postgres"} 0' in text
    assert "horolog_jobs" not in text
    assert "horolog_stream_messages" in text
    assert "horolog_stream_messages" not in metrics(replace(STORE), None)
