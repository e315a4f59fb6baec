"""Tokens only grow, and partitions are shared evenly."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from horolog.domain.origin import Origin
from horolog.domain.partition import (
    PartitionState,
    decide_election,
    decide_release,
    evolve,
    fair_share,
)

ME = Origin("scanner")


@given(st.lists(st.sampled_from(["a", "b", "c", "release"]), max_size=50))
def test_each_election_has_a_larger_token_than_all_before_it(steps: list[str]) -> None:
    state = PartitionState(uuid4(), 5)
    tokens = [0]
    for step in steps:
        if step == "release":
            for event in decide_release(state, state.instance or "nobody", origin=ME):
                state = evolve(state, event)
                assert state.token is None
        else:
            state = evolve(state, decide_election(state, step, 10, origin=ME))
            assert state.token is not None
            assert state.token > tokens[-1]
            assert state.instance == step
            tokens.append(state.token)


def test_nobody_releases_what_another_leads() -> None:
    state = evolve(
        PartitionState(uuid4(), 5), decide_election(PartitionState(uuid4(), 5), "a", 10, origin=ME)
    )
    assert decide_release(state, "b", origin=ME) == []


@given(st.integers(1, 1024), st.integers(1, 50))
def test_the_shares_cover_all_partitions_and_differ_by_one_at_most(
    partitions: int, instances: int
) -> None:
    shares = [fair_share(partitions, instances, rank) for rank in range(instances)]
    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1
