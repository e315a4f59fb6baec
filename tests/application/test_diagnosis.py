"""What needs attention is said together with what to do; what heals by itself needs nothing."""

from dataclasses import replace
from datetime import UTC, datetime

from horolog.application.diagnosis import findings
from horolog.application.health import (
    DeadLetterDepth,
    Follower,
    Instance,
    QueueDepth,
    QueueHealth,
    StoreHealth,
    Waiting,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SCANNER = Instance("s1", "scanner", NOW, True)
WORKER = Instance("w1", "worker", NOW, True, handlers=["ping"])

WELL = StoreHealth(
    server="18.6",
    schema=4,
    schema_of_code=4,
    clock_offset_s=0.0,
    round_trip_s=0.001,
    position=100,
    jobs={"active": 3},
    late_fires=0,
    lateness_s=0.0,
    overdue_looks=0,
    partitions=64,
    unowned=0,
    leaders={"s1": 64},
    unpublished=0,
    instances=[SCANNER, WORKER],
)
QUEUE = QueueHealth("2.15.1", True, 0, 0, 500_000, [QueueDepth("default", 0, 0, 0)])


def attention(store: StoreHealth | None, queue: QueueHealth | None = QUEUE) -> list[str]:
    return [f"{one.what}: {one.do}" for one in findings(store, queue) if one.needs_attention]


def test_a_healthy_system_needs_nothing() -> None:
    assert findings(WELL, QUEUE) == []


def test_an_empty_namespace_needs_no_scanner() -> None:
    empty = replace(WELL, jobs={}, instances=[], leaders={}, unowned=64)
    assert attention(empty) == []


def test_jobs_without_a_scanner_are_told() -> None:
    (told,) = attention(replace(WELL, instances=[WORKER], unowned=64))
    assert "nothing fires: run horolog scanner" in told


def test_what_was_set_aside_is_told() -> None:
    (told,) = attention(replace(WELL, inbox_refused=2))
    assert "set aside: 2: horolog inbox list --refused" in told


def test_claims_that_pile_up_unpublished_are_told() -> None:
    growing = replace(SCANNER, details={"unpublished": 812, "unpublished_grows": True})
    (told,) = attention(replace(WELL, instances=[growing, WORKER], unpublished=812))
    assert "s1 claims faster than the ready queue takes it: 812 claims unpublished" in told
    steady = replace(SCANNER, details={"unpublished": 812, "unpublished_grows": False})
    assert attention(replace(WELL, instances=[steady, WORKER], unpublished=812)) == []


def test_partitions_without_a_leader_are_told_while_scanners_live() -> None:
    (told,) = attention(replace(WELL, unowned=3))
    assert "3 of 64 partitions" in told


def test_claims_that_no_worker_takes_are_told() -> None:
    waiting = [Waiting("ping", "default", "claimed", 5, 1.0)]
    (told,) = attention(replace(WELL, instances=[SCANNER], waiting=waiting))
    assert "run horolog worker" in told


def test_a_handler_that_no_living_worker_has_is_named() -> None:
    waiting = [
        Waiting("ping", "default", "claimed", 5, 1.0),
        Waiting("pong", "default", "claimed", 2, 1.0),
        Waiting("later", "default", "scheduled", 1, -60.0),
    ]
    (told,) = attention(replace(WELL, waiting=waiting))
    assert "waiting for handler 'pong'" in told
    assert ": 2:" in told


def test_of_a_misspelt_handler_the_nearest_is_named() -> None:
    waiting = [Waiting("pingg", "default", "claimed", 2, 1.0)]
    (told,) = attention(replace(WELL, waiting=waiting))
    assert "or was 'ping' meant, which one has?" in told


def test_a_queue_that_hands_out_nothing_more_is_told() -> None:
    held = replace(QUEUE, queues=[QueueDepth("mail", 7, 20, 0, most_held=20)])
    (told,) = attention(WELL, held)
    assert "queue mail hands out nothing more: its workers hold 20" in told
    assert attention(WELL, replace(QUEUE, queues=[QueueDepth("mail", 7, 19, 0, 20)])) == []


def test_a_worker_without_any_handler_is_named() -> None:
    empty = replace(WORKER, instance="w2", handlers=[])
    (told,) = attention(replace(WELL, instances=[SCANNER, WORKER, empty]))
    assert "worker w2 has no handler: it can run nothing" in told


def test_a_worker_that_does_not_say_what_it_handles_is_given_the_benefit() -> None:
    silent = replace(WORKER, handlers=None)
    waiting = [Waiting("pong", "default", "claimed", 2, 1.0)]
    assert attention(replace(WELL, instances=[SCANNER, silent], waiting=waiting)) == []


def test_a_scanner_that_cannot_publish_is_told_with_its_words() -> None:
    stuck = replace(SCANNER, details={"queue_away": "the stream is full"})
    (told,) = attention(replace(WELL, instances=[stuck, WORKER]))
    assert "scanner s1 cannot publish: the stream is full" in told


def test_lateness_counts_from_where_a_takeover_no_longer_explains_it() -> None:
    assert attention(replace(WELL, late_fires=4, lateness_s=1.0)) == []
    (told,) = attention(replace(WELL, late_fires=4, lateness_s=60.0))
    assert "late fires: 4, the oldest by 60 s" in told


def test_clocks_that_differ_are_told_with_their_side() -> None:
    assert attention(replace(WELL, clock_offset_s=0.4)) == []
    (ahead,) = attention(replace(WELL, clock_offset_s=-3.0))
    assert "3.0 s ahead of the database's" in ahead
    (behind,) = attention(replace(WELL, clock_offset_s=3.0))
    assert "3.0 s behind the database's" in behind


def test_dead_letters_are_told_by_owner() -> None:
    letters = [DeadLetterDepth("the team", 2, NOW), DeadLetterDepth(None, 1, NOW)]
    told = attention(replace(WELL, dead_letters=letters))
    assert "dead-letters list --owner 'the team', then" in told[0]
    assert "without an owner: 1" in told[1]


def test_looks_that_nobody_took_are_told() -> None:
    (told,) = attention(replace(WELL, overdue_looks=7))
    assert "nobody has looked: 7" in told


def test_what_heals_by_itself_is_told_and_needs_nothing() -> None:
    store = replace(WELL, unpublished=3, followers=[Follower("mine", 90, 10)])
    found = findings(store, replace(QUEUE, stream=False))
    assert len(found) == 3
    assert not any(one.needs_attention for one in found)


def test_a_stream_that_is_nearly_full_is_told() -> None:
    (told,) = attention(WELL, replace(QUEUE, messages=480_000))
    assert "add workers" in told


def test_a_service_that_is_away_is_told_with_its_error() -> None:
    found = findings(None, None, store_error="refused", queue_error="no route")
    assert ["refused" in found[0].what, "no route" in found[1].what] == [True, True]
    assert all(one.needs_attention for one in found)


def test_missed_deadlines_are_counted() -> None:
    (found,) = attention(replace(WELL, missed_deadlines=3))
    assert found.startswith("deadlines missed in the last 24 hours: 3")
