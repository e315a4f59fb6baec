"""What is due, drawn in turn from the partitions."""

from uuid import UUID

from horolog.application.scanner.agenda import Agenda
from horolog.application.scanner.wheel import Entry, Wheel


def entry(due_us: int, number: int, partition: int = 0) -> Entry:
    return Entry(due_us, UUID(int=number), partition)


def test_a_flood_in_one_partition_does_not_delay_another() -> None:
    agenda = Agenda(Wheel())
    for number in range(10_000):
        agenda.add(entry(number, number, 0))
    agenda.add(entry(20_000, 20_000, 1))
    drawn = agenda.draw(30_000, 100, {0, 1})
    assert entry(20_000, 20_000, 1) in drawn
    assert len(drawn) == 100
    assert agenda.waiting == 9_901


def test_a_partition_is_drawn_from_in_the_order_of_due_times() -> None:
    agenda = Agenda(Wheel())
    for number in reversed(range(500)):
        agenda.add(entry(number, number, number % 3))
    drawn: list[Entry] = []
    while batch := agenda.draw(1_000, 64, {0, 1, 2}):
        drawn += batch
    assert len(drawn) == 500
    for partition in range(3):
        of_partition = [e for e in drawn if e.partition == partition]
        assert of_partition == sorted(of_partition)


def test_partitions_that_are_not_trusted_wait() -> None:
    agenda = Agenda(Wheel())
    agenda.add(entry(1, 1, 0))
    agenda.add(entry(1, 2, 1))
    assert agenda.draw(5, 10, {1}) == [entry(1, 2, 1)]
    assert agenda.next_due({1}) is None
    assert agenda.next_due({0}) == 0
    assert agenda.draw(5, 10, {0}) == [entry(1, 1, 0)]


def test_what_is_in_hand_is_not_given_out_twice_and_news_of_it_is_kept() -> None:
    agenda = Agenda(Wheel())
    first = entry(1, 1)
    agenda.add(first)
    assert agenda.draw(5, 10, {0}) == [first]
    agenda.add(first)
    agenda.add(entry(90, 1))
    assert agenda.draw(5, 10, {0}) == []
    agenda.settle([first])
    assert agenda.draw(100, 10, {0}) == [first], "the sweep's word is checked against the row"


def test_a_partition_that_is_led_no_more_is_forgotten() -> None:
    agenda = Agenda(Wheel())
    agenda.add(entry(1, 1, 0))
    agenda.add(entry(99, 2, 0))
    agenda.add(entry(1, 3, 1))
    agenda.release(5)
    agenda.forget(0)
    assert len(agenda) == 1
    assert agenda.draw(100, 10, {0, 1}) == [entry(1, 3, 1)]
