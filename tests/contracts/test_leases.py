"""What every store promises of leases: by its own clock, under tokens, never another's."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from horolog.application.decision import decide_on_partition
from horolog.application.log import Fences
from horolog.application.scanner.clock import instant
from horolog.domain.occurrence_events import Attempted, CancelRequested, Succeeded
from horolog.domain.origin import Origin
from horolog.domain.partition import decide_election

if TYPE_CHECKING:
    from tests.contracts.conftest import Store, Story

    from horolog.application.scanner.leadership import Lease, View

ME = Origin(actor="test")


async def renew(
    store: Store, who: str, tokens: dict[int, int] | None = None, lease_s: float = 30.0
) -> View:
    view = await store.leases.renew(who, tokens or {}, lease_s=lease_s, details={"queue_away": ""})
    store.later()
    return view


def elect(store: Store, who: str, lease: Lease, lease_s: float = 30.0) -> str:
    event = decide_election(lease.state, who, lease_s, origin=ME)
    decision, _ = decide_on_partition(lease.state, [event], lease_s)
    verdict = store.log.append([decision], Fences(who, {})).verdicts[0]
    store.later()
    return verdict


async def test_a_renewal_shows_the_living_and_every_partition(store: Store) -> None:
    await renew(store, "b")
    view = await renew(store, "a")
    assert view.alive == ["a", "b"]
    assert [lease.state.partition for lease in view.leases] == list(range(64))
    assert view.leases[3].state.stream == store.partition_stream(3)
    assert not any(lease.running for lease in view.leases)
    assert abs(store.now() - instant(view.now_us)) < timedelta(seconds=5)


async def test_the_clock_alone_is_the_clock_of_the_renewals(store: Store) -> None:
    before = (await renew(store, "a")).now_us
    between = await store.leases.now_us()
    store.later()
    assert before <= between <= (await renew(store, "a")).now_us


async def test_an_election_makes_a_lease_that_keeps_others_out(store: Store) -> None:
    lease = (await renew(store, "a")).leases[0]
    assert elect(store, "a", lease) == "accepted"
    assert elect(store, "b", lease) == "conflict", "decided from an old version"
    taken = (await renew(store, "b")).leases[0]
    assert (taken.state.instance, taken.state.token, taken.running) == ("a", 1, True)
    assert elect(store, "b", taken) == "conflict", "the lease runs"
    ends_in_s = (await renew(store, "b")).others_end_in_s
    assert ends_in_s is not None
    assert 0 < ends_in_s <= 30
    assert (await renew(store, "a")).others_end_in_s is None, "nobody else leads"


async def test_only_ones_own_lease_under_its_token_is_extended(store: Store) -> None:
    lease = (await renew(store, "a")).leases[2]
    elect(store, "a", lease, lease_s=0.0)
    assert not (await renew(store, "b", {2: 1})).leases[2].running, "not b's"
    assert not (await renew(store, "a", {2: 9})).leases[2].running, "not under that token"
    assert (await renew(store, "a", {2: 1})).leases[2].running
    elect_again = (await renew(store, "b")).leases[2]
    assert elect(store, "b", elect_again) == "conflict"


async def test_a_lease_that_ended_is_taken_over_under_a_greater_token(store: Store) -> None:
    elect(store, "a", (await renew(store, "a")).leases[1], lease_s=0.0)
    ended = (await renew(store, "b")).leases[1]
    assert elect(store, "b", ended) == "accepted"
    successor = (await renew(store, "a", {1: 1})).leases[1]
    assert (successor.state.instance, successor.state.token) == ("b", 2)


async def test_an_instance_that_left_or_fell_silent_is_not_among_the_living(store: Store) -> None:
    await renew(store, "silent", lease_s=0.0)
    await renew(store, "gone")
    await store.leases.leave("gone")
    assert (await renew(store, "a")).alive == ["a"]


async def test_publishing_positions_only_grow_and_only_by_their_leader(store: Store) -> None:
    elect(store, "a", (await renew(store, "a")).leases[3])
    await store.leases.mark_published("a", {3: 1, 0: 1}, {3: 50, 0: 50})
    await store.leases.mark_published("a", {3: 1}, {3: 40})
    await store.leases.mark_published("b", {3: 1}, {3: 60})
    await store.leases.mark_published("a", {3: 2}, {3: 70})
    published = [lease.published for lease in (await renew(store, "a")).leases]
    assert published[:5] == [0, 0, 0, 50, 0]


async def test_a_lease_of_an_attempt_is_extended_while_it_runs(store: Store, story: Story) -> None:
    running = story.went_on(story.claimed(story.registered()), Attempted(attempt=1, lease=1.0))
    claimed = story.claimed(story.registered())
    asked = [(running.id, 1), (running.id, 2), (claimed.id, 1)]
    extended = store.attempts.extend(asked, 500.0)
    assert (extended.held, extended.cancelled) == ({running.id}, set())
    [row] = store.states.due([running.id])
    assert row.due_at > store.now() + timedelta(seconds=400)
    stopping = story.went_on(running, CancelRequested())
    assert store.attempts.extend([(running.id, 1)], 30.0).cancelled == {running.id}
    story.went_on(stopping, Succeeded(attempt=1))
    assert store.attempts.extend([(running.id, 1)], 30.0).held == set()
