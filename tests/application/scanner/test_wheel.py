"""The time wheel against the plainest thing that could do its work: a sorted list."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from horolog.application.scanner.wheel import Entry, Wheel

START_US = 1_795_000_000_000_000
SPANS_US = [0, 1, 999, 1_000, 255_999, 256_000, 65_536_000, 61_000_000, 10**10, 10**14]


def entry(due_us: int, number: int, partition: int = 0) -> Entry:
    return Entry(due_us, UUID(int=number), partition)


dues = st.one_of(
    st.sampled_from(SPANS_US).flatmap(lambda span: st.integers(span - 2_000, span + 2_000)),
    st.integers(-(10**7), 10**8),
).map(lambda offset: START_US + offset)

steps = st.one_of(
    st.tuples(st.just("add"), dues, st.integers(0, 40)),
    st.tuples(st.just("remove"), st.just(0), st.integers(0, 40)),
    st.tuples(st.just("forget"), st.just(0), st.integers(0, 3)),
    st.tuples(st.just("pop"), dues, st.integers(1, 50)),
)


@given(st.lists(steps, max_size=120), st.sampled_from([100, 1_000, 64_000]))
def test_it_gives_what_a_sorted_list_would_give(
    script: list[tuple[str, int, int]], tick_us: int
) -> None:
    wheel = Wheel(tick_us=tick_us, start_us=START_US)
    known: dict[UUID, Entry] = {}
    for what, due_us, number in script:
        if what == "add":
            added = entry(due_us, number, number % 4)
            assert wheel.add(added)
            before = known.get(added.id)
            if before is None or added.due_us < before.due_us:
                known[added.id] = added
        elif what == "remove":
            wheel.remove(UUID(int=number))
            known.pop(UUID(int=number), None)
        elif what == "forget":
            wheel.remove_partition(number)
            known = {key: e for key, e in known.items() if e.partition != number}
        else:
            due = sorted(e for e in known.values() if e.due_us <= due_us)[:number]
            assert wheel.pop_due(due_us, number) == due
            for popped in due:
                del known[popped.id]
        assert len(wheel) == len(known)
        next_due = wheel.next_due()
        assert (next_due is None) == (not known)
        if next_due is not None:
            assert next_due <= min(e.due_us for e in known.values())
    everything = sorted(known.values())
    assert wheel.pop_due(1 << 60) == everything


@given(st.lists(st.integers(0, 10**8), unique=True, max_size=60), st.integers(1, 20))
def test_when_full_it_keeps_the_nearest_and_says_from_where_it_is_incomplete(
    offsets: list[int], capacity: int
) -> None:
    wheel = Wheel(capacity=capacity, start_us=START_US)
    entries = [entry(START_US + offset, number) for number, offset in enumerate(offsets)]
    for added in entries:
        wheel.add(added)
        assert len(wheel) <= capacity
    complete_until = wheel.incomplete_from
    kept = wheel.pop_due(1 << 60)
    assert (complete_until is None) == (len(entries) <= capacity)
    if complete_until is not None:
        assert [e for e in kept if e.due_us < complete_until] == sorted(
            e for e in entries if e.due_us < complete_until
        )


def test_the_earlier_due_time_of_an_entry_counts() -> None:
    wheel = Wheel(start_us=START_US)
    wheel.add(entry(START_US + 5_000_000, 1))
    wheel.add(entry(START_US + 1_000_000, 1))
    wheel.add(entry(START_US + 9_000_000, 1))
    assert wheel.pop_due(START_US + 1_000_000) == [entry(START_US + 1_000_000, 1)]
    assert wheel.pop_due(START_US + 9_000_000) == []


def test_an_entry_is_not_given_out_a_microsecond_early() -> None:
    wheel = Wheel(tick_us=1_000, start_us=START_US)
    wheel.add(entry(START_US + 1_500, 1))
    assert wheel.pop_due(START_US + 1_499) == []
    assert wheel.pop_due(START_US + 1_500) == [entry(START_US + 1_500, 1)]


def test_time_that_goes_back_loses_nothing() -> None:
    wheel = Wheel(start_us=START_US)
    wheel.pop_due(START_US + 3_600_000_000)
    wheel.add(entry(START_US + 10_000_000, 1))
    assert wheel.pop_due(START_US) == []
    assert wheel.pop_due(START_US + 10_000_000) == [entry(START_US + 10_000_000, 1)]


def test_a_row_that_changes_all_the_time_does_not_fill_the_memory() -> None:
    wheel = Wheel(capacity=10, start_us=START_US)
    for step in range(100_000):
        wheel.add(entry(START_US + 200_000_000 - step, 1))
        wheel.add(entry(START_US + 250_000_000, 2))
    assert wheel.held < 1_000
