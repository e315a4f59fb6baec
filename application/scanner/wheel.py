"""A hierarchical time wheel: what comes due when, at a constant cost for each entry.

Levels of 256 slots. An entry lies at the level of the highest digit (base 256) in which its tick
differs from the wheel's, in the slot of that digit; when time reaches a slot, its entries move to a
finer level or are due. So an entry of the next minute is moved two or three times, and the next
slot with something in it is found by a bit scan, however long the wheel slept.

The wheel is a cache. It is bounded: when it is full, the entries furthest ahead are forgotten, and
``incomplete_from`` says from which due time on the index has to be read again. A claim is validated
against the index row, so an entry that is out of date fires nothing.
"""

from typing import NamedTuple
from uuid import UUID

BITS = 8
SLOTS = 1 << BITS
LEVELS = 7
"""56 bits of ticks: the finest tick of 100 µs reaches beyond the year 9999."""
_NEVER = 1 << 62


class Entry(NamedTuple):
    """Something that is due at ``due_us`` (database time). Ordered by due time, then id.

    The rest says with whom it takes turns: its queue (empty where that is not known yet), its
    tenant, its priority.
    """

    due_us: int
    id: UUID
    partition: int
    queue: str = ""
    tenant: str = ""
    priority: int = 0


class Wheel:
    """Entries by id: the earliest due time that was added counts, until it is popped."""

    def __init__(self, *, tick_us: int = 1_000, capacity: int = 200_000, start_us: int = 0) -> None:
        self._tick_us = tick_us
        self._capacity = capacity
        self._tick = start_us // tick_us
        self._entries: dict[UUID, Entry] = {}
        self._slots: list[list[list[Entry]]] = [[[] for _ in range(SLOTS)] for _ in range(LEVELS)]
        self._earliest: list[list[int]] = [[_NEVER] * SLOTS for _ in range(LEVELS)]
        self._occupied = [0] * LEVELS
        # What time has reached, the earliest last, and what has come since that was put in order.
        # By due time and id; the id as its number, for UUIDs are compared by Python code.
        self._arrived: list[tuple[int, int, Entry]] = []
        self._unordered: list[tuple[int, int, Entry]] = []
        self.held = 0
        """Entries in memory, with those that were replaced or taken out and not passed yet."""
        self.incomplete_from: int | None = None
        """The earliest due time of what was forgotten for want of room; set to None by the reader
        that begins to read from there."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, identity: UUID) -> bool:
        return identity in self._entries

    def add(self, entry: Entry) -> bool:
        """Whether the entry is in the wheel now; False where it is full of earlier ones."""
        known = self._entries.get(entry.id)
        if known is not None and known.due_us <= entry.due_us:
            return True
        if known is None and len(self._entries) >= self._capacity and not self._make_room(entry):
            self._forget_from(entry.due_us)
            return False
        self._entries[entry.id] = entry
        self.held += 1
        self._place(entry)
        if self.held > 2 * self._capacity + SLOTS:
            self._compact()
        return True

    def remove(self, identity: UUID) -> None:
        """Takes the entry out, if it is there."""
        self._entries.pop(identity, None)

    def remove_partition(self, partition: int) -> None:
        """Takes out all entries of a partition that is led no more."""
        gone = [entry.id for entry in self._entries.values() if entry.partition == partition]
        for identity in gone:
            del self._entries[identity]

    def pop_due(self, now_us: int, limit: int | None = None) -> list[Entry]:
        """Takes out what is due at ``now_us``, at most ``limit``, by (due time, id)."""
        self._advance(now_us // self._tick_us)
        popped: list[Entry] = []
        arrived = self._in_order()
        while arrived and arrived[-1][0] <= now_us and len(popped) != limit:
            _, _, entry = arrived.pop()
            self.held -= 1
            if self._entries.get(entry.id) is entry:
                del self._entries[entry.id]
                popped.append(entry)
        return popped

    def next_due(self) -> int | None:
        """When to look again: never later than the earliest due time; None where there is none.

        It may be earlier, where the earliest entry was taken out or replaced.
        """
        if not self._entries:
            return None
        if arrived := self._in_order():
            return arrived[-1][0]
        for level, occupied in enumerate(self._occupied):
            if occupied:
                return self._earliest[level][_lowest(occupied)]
        return None

    def _place(self, entry: Entry) -> None:
        tick = entry.due_us // self._tick_us
        if tick <= self._tick:
            self._unordered.append((entry.due_us, entry.id.int, entry))
            return
        level = ((tick ^ self._tick).bit_length() - 1) // BITS
        slot = tick >> (BITS * level) & (SLOTS - 1)
        self._slots[level][slot].append(entry)
        self._occupied[level] |= 1 << slot
        if entry.due_us < self._earliest[level][slot]:
            self._earliest[level][slot] = entry.due_us

    def _in_order(self) -> list[tuple[int, int, Entry]]:
        """What has arrived. It mostly comes in the order of the index: sorting it is next to free,
        where a heap takes each entry through its whole height."""
        if self._unordered:
            self._arrived += self._unordered
            self._unordered = []
            self._arrived.sort(reverse=True)
        return self._arrived

    def _advance(self, tick: int) -> None:
        """Moves the wheel on; what it passes over becomes due or moves to a finer level."""
        while (found := self._next_slot()) is not None:
            level, slot, begins = found
            if begins > tick:
                break
            self._tick = begins
            for entry in self._take(level, slot):
                if self._entries.get(entry.id) is entry:
                    self._place(entry)
                else:
                    self.held -= 1
        self._tick = max(self._tick, tick)

    def _next_slot(self) -> tuple[int, int, int] | None:
        """The level, number and first tick of the earliest slot with something in it."""
        for level, occupied in enumerate(self._occupied):
            if occupied:
                slot = _lowest(occupied)
                above = self._tick >> (BITS * (level + 1))
                return level, slot, (above << BITS | slot) << (BITS * level)
        return None

    def _take(self, level: int, slot: int) -> list[Entry]:
        entries = self._slots[level][slot]
        self._slots[level][slot] = []
        self._earliest[level][slot] = _NEVER
        self._occupied[level] &= ~(1 << slot)
        return entries

    def _make_room(self, entry: Entry) -> bool:
        """Forgets the furthest slot, if ``entry`` comes before all of it; whether it did."""
        for level in reversed(range(LEVELS)):
            while self._occupied[level]:
                slot = self._occupied[level].bit_length() - 1
                if self._earliest[level][slot] <= entry.due_us:
                    return False
                entries = self._take(level, slot)
                self.held -= len(entries)
                for forgotten in entries:
                    if self._entries.get(forgotten.id) is forgotten:
                        del self._entries[forgotten.id]
                        self._forget_from(forgotten.due_us)
                if len(self._entries) < self._capacity:
                    return True
        return False

    def _forget_from(self, due_us: int) -> None:
        known = self.incomplete_from
        self.incomplete_from = due_us if known is None else min(known, due_us)

    def _compact(self) -> None:
        """Drops what was replaced or removed, so that memory stays within the bound."""
        self._arrived, self._unordered = [], []
        for level in range(LEVELS):
            while self._occupied[level]:
                self._take(level, _lowest(self._occupied[level]))
        self.held = len(self._entries)
        for entry in self._entries.values():
            self._place(entry)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
