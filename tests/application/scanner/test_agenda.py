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


def of(tenant: str, due_us: int, number: int, partition: int = 0, priority: int = 0) -> Entry:
    return Entry(due_us, UUID(int=number), partition, "default", tenant, priority)


def test_a_tenants_flood_does_not_delay_another_of_its_partition_and_queue() -> None:
    agenda = Agenda(Wheel())
    for number in range(10_000):
        agenda.add(of("kbig", number, number))
    single = of("ksmall", 20_000, 20_000)
    agenda.add(single)
    assert single in agenda.draw(30_000, 100, {0})


def test_tenants_share_what_is_drawn_whatever_each_has_waiting() -> None:
    agenda = Agenda(Wheel())
    for number in range(9_000):
        agenda.add(of(f"k{number % 3}" if number % 10 == 0 else "kbig", number, number))
    drawn = agenda.draw(10_000, 400, {0})
    shares = {tenant: sum(e.tenant == tenant for e in drawn) for tenant in ("k0", "k1", "kbig")}
    assert max(shares.values()) - min(shares.values()) <= 400 // 64 + 1


def test_a_higher_priority_goes_first_and_no_lower_one_stands_still() -> None:
    agenda = Agenda(Wheel())
    for number in range(3_000):
        agenda.add(of("k", number, number, priority=(number % 3) * 10))
    drawn = agenda.draw(10_000, 100, {0})
    counts = {p: sum(e.priority == p for e in drawn) for p in (20, 10, 0)}
    assert counts == {20: 50, 10: 25, 0: 25}
    assert [e.priority for e in drawn[:50]] == [20] * 50


def test_what_a_priority_does_not_use_is_the_others() -> None:
    agenda = Agenda(Wheel())
    for number in range(100):
        agenda.add(of("k", number, number, priority=10 if number < 3 else 0))
    assert len(agenda.draw(1_000, 60, {0})) == 60
    rest = agenda.draw(1_000, 60, {0})
    assert len(rest) == 40
    assert agenda.next_due({0}) is None


class Rooms:
    """Room in ready queues, at a test's word."""

    def __init__(self, **rooms: int) -> None:
        self.rooms = rooms
        self.firsts: dict[str, int] = {}

    def __call__(self, queue: str, first: bool) -> int:
        return self.firsts.get(queue, 0) if first else self.rooms.get(queue, 1_000)


def test_no_more_is_drawn_than_a_queue_has_room_for_and_others_go_on() -> None:
    rooms = Rooms(default=5)
    agenda = Agenda(Wheel(), room=rooms)
    for number in range(100):
        agenda.add(of("k", number, number))
        agenda.add(Entry(number, UUID(int=1_000 + number), 0, "mail", "k"))
    drawn = agenda.draw(1_000, 50, {0})
    assert sum(e.queue == "default" for e in drawn) == 5
    assert sum(e.queue == "mail" for e in drawn) == 45
    rooms.rooms["default"] = 0
    agenda.draw(1_000, 100, {0})
    assert agenda.waiting == agenda.held_back == 95
    assert agenda.next_due({0}) is None, "what is held back is no reason to come back at once"
    rooms.rooms["default"] = 1_000
    assert agenda.next_due({0}) == 0
    assert len(agenda.draw(1_000, 100, {0})) == 95


def test_the_first_of_somebody_new_passes_where_a_queue_is_full() -> None:
    rooms = Rooms(default=10)
    agenda = Agenda(Wheel(), room=rooms)
    for number in range(100):
        agenda.add(of("kbig", number, number))
    first = agenda.draw(1_000, 50, {0})
    assert len(first) == 10
    agenda.settle(first)
    rooms.rooms["default"], rooms.firsts["default"] = 0, 2
    for number in range(200, 205):
        agenda.add(of(f"k{number}", number, number))
    agenda.add(of("k200", 300, 300))
    assert agenda.next_due({0}) == 200
    agenda.release(1_000)
    assert agenda.next_due({0}) == 0
    drawn = agenda.draw(1_000, 50, {0})
    assert [e.tenant for e in drawn] == ["k200", "k201"], "one of each, as many as there is room"
    agenda.settle(drawn)
    agenda.forget(0)
    assert (len(agenda), agenda.ready) == (0, 0)


def test_more_than_it_may_hold_is_left_in_the_index_and_asked_for_when_it_is_worked_off() -> None:
    rooms = Rooms(default=0)
    agenda = Agenda(Wheel(), room=rooms, capacity=10)
    for number in range(30):
        assert agenda.add(of("k", number, number))
    agenda.release(100)
    assert agenda.waiting == 10
    assert agenda.left_behind.first(0, ["default"]) == of("k", 10, 10)
    assert agenda.run_short() == [], "the queue is full"
    rooms.rooms["default"] = 6
    assert agenda.run_short() == [], "and there is something for it"
    agenda.draw(100, 50, {0})
    assert agenda.run_short() == [("default", 0)]
    assert agenda.left_behind.fetch("default", 0) == of("k", 10, 10)
    assert agenda.run_short() == []


def test_a_queue_that_nobody_works_at_leaves_the_others_and_newcomers_their_place() -> None:
    agenda = Agenda(Wheel(), room=Rooms(dead=0, live=0), capacity=100)

    def add(queue: str, tenant: str, begin: int, count: int) -> int:
        before = agenda.waiting
        for number in range(begin, begin + count):
            agenda.add(Entry(number, UUID(int=number), 0, queue, tenant))
        agenda.release(1 << 40)
        return agenda.waiting - before

    assert add("dead", "k", 1, 10_000) == 100
    assert add("live", "k", 20_000, 10_000) == 50
    assert add("dead", "another", 40_000, 10) == 1, "its first, and no more"
    assert sum(add("dead", f"k{number}", 50_000 + number, 1) for number in range(100)) == 49
    agenda.forget(0)
    assert (agenda.waiting, len(agenda)) == (0, 0)


def test_a_small_tenant_beside_a_flood_keeps_more_than_one_entry_where_there_is_memory() -> None:
    agenda = Agenda(Wheel(), room=Rooms(default=0), capacity=10_000)
    for number in range(20_000):
        agenda.add(of("kflood", number, number))
    for number in range(20_000, 20_050):
        agenda.add(of("ksmall", number, number))
    agenda.release(1 << 40)
    assert agenda.waiting == 10_000 + 10
