"""Keys that are kept for a moment, bounded, and dropped; master keys, right, wrong and missing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from horolog.domain.errors import InvalidPayload, InvalidSetting, NoMasterKey
from horolog.infrastructure.privacy.keyring import CachedKeyring, SubjectKey
from horolog.infrastructure.privacy.master_keys import MasterKeys, new_master_key

PLACE, OTHER = UUID(int=1), UUID(int=2)
MASTER = new_master_key()


@dataclass
class Rows:
    """A table of keys in memory, which counts how often it is asked."""

    rows: dict[str, SubjectKey] = field(default_factory=dict[str, SubjectKey])
    asked: int = 0
    while_read: Callable[[], None] = lambda: None

    def of_subject(self, subject: str) -> SubjectKey | None:
        self.asked += 1
        return self.rows.get(subject)

    def of_id(self, key: UUID) -> SubjectKey | None:
        self.asked += 1
        found = next((row for row in self.rows.values() if row.id == key), None)
        self.while_read()
        return found

    def make(self, key: SubjectKey) -> SubjectKey:
        return self.rows.setdefault(key.subject, key)

    def erased(self, keys: Collection[UUID]) -> frozenset[UUID]:
        self.asked += 1
        gone = [row.id for row in self.rows.values() if row.wrapped is None]
        return frozenset(gone).intersection(keys)

    def forget(self, subject: str) -> None:
        self.rows[subject] = replace(self.rows[subject], wrapped=None)


@pytest.fixture
def rows() -> Rows:
    return Rows()


def keyring(rows: Rows, masters: str = MASTER, **settings: object) -> CachedKeyring:
    namespace = str(settings.pop("namespace", "here"))
    return CachedKeyring(rows, lambda: MasterKeys.read(masters), namespace, **settings)  # pyright: ignore[reportArgumentType]


def test_a_key_is_read_once_in_a_while(rows: Rows) -> None:
    now = [100.0]
    ring = keyring(rows, keep_s=5.0, monotonic=lambda: now[0])
    token = ring.seal("ann", PLACE, 1)
    asked = rows.asked
    for _ in range(10):
        ring.seal("ann", PLACE, 2)
        ring.open(token)
    assert rows.asked == asked
    now[0] += 5.0
    ring.open(token)
    assert rows.asked == asked + 1


def test_a_key_that_was_destroyed_opens_nothing_after_that_while_at_the_latest(rows: Rows) -> None:
    now = [100.0]
    ring = keyring(rows, keep_s=5.0, monotonic=lambda: now[0])
    token = ring.seal("ann", PLACE, 1)
    rows.forget("ann")
    now[0] += 5.0
    assert ring.open(token) is None


def test_a_key_that_is_dropped_is_read_anew_at_once(rows: Rows) -> None:
    ring = keyring(rows)
    token = ring.seal("ann", PLACE, 1)
    rows.forget("ann")
    ring.drop([token.key])
    assert ring.open(token) is None


def test_a_key_that_is_dropped_while_its_row_is_read_is_not_kept(rows: Rows) -> None:
    token = keyring(rows).seal("ann", PLACE, 1)
    ring = keyring(rows)

    def forgotten_now() -> None:
        rows.forget("ann")
        ring.drop([token.key])

    rows.while_read = forgotten_now
    assert ring.open(token) is not None  # it was read a moment before
    assert ring.open(token) is None


def test_so_many_keys_are_kept_and_no_more(rows: Rows) -> None:
    ring = keyring(rows, most=3)
    tokens = [ring.seal(f"subject {number}", PLACE, number) for number in range(10)]
    assert len(vars(ring)["_kept"]) == len(vars(ring)["_by_subject"]) == 3
    assert [opened.value for token in tokens if (opened := ring.open(token))] == list(range(10))


def test_what_is_erased_is_not_asked_for_again(rows: Rows) -> None:
    ring = keyring(rows)
    token = ring.seal("ann", PLACE, 1)
    rows.forget("ann")
    assert ring.erased([token.key]) == {token.key}
    asked = rows.asked
    assert ring.erased([token.key]) == {token.key}
    assert rows.asked == asked


@pytest.mark.parametrize(
    "change",
    [{"place": OTHER}, {"data": "AAAA" * 12}, {"data": "AAAA"}, {"data": "A"}],
)
def test_a_value_that_was_moved_or_changed_does_not_open(
    rows: Rows, change: dict[str, Any]
) -> None:
    ring = keyring(rows)
    with pytest.raises(InvalidPayload, match="does not open with its key"):
        ring.open(replace(ring.seal("ann", PLACE, 1), **change))


def test_a_key_that_was_given_to_another_subject_does_not_open(rows: Rows) -> None:
    token = keyring(rows).seal("ann", PLACE, 1)
    rows.rows["bob"] = replace(rows.rows.pop("ann"), subject="bob")
    with pytest.raises(NoMasterKey, match="its row in subject_keys was changed"):
        keyring(rows).open(token)


def test_another_namespace_has_other_keys(rows: Rows) -> None:
    token = keyring(rows).seal("ann", PLACE, 1)
    with pytest.raises(NoMasterKey, match="copied from another namespace"):
        keyring(rows, namespace="there").open(token)


def test_without_a_master_key_nothing_is_sealed_and_the_message_says_what_to_do(rows: Rows) -> None:
    ring = keyring(rows, "")
    assert not ring.has_master_key
    with pytest.raises(NoMasterKey, match="set HOROLOG_MASTER_KEY"):
        ring.seal("ann", PLACE, 1)
    assert rows.rows == {}


def test_a_wrong_master_key_is_told_from_the_right_one_and_loses_nothing(rows: Rows) -> None:
    token = keyring(rows).seal("ann", PLACE, 1)
    other = new_master_key()
    with pytest.raises(NoMasterKey) as refused:
        keyring(rows, other).open(token)
    message = str(refused.value)
    right, wrong = MasterKeys.read(MASTER), MasterKeys.read(other)
    assert str(right.current) in message
    assert str(wrong.current) in message
    assert MASTER not in message
    assert other not in message
    opened = keyring(rows, f"{other},{MASTER}").open(token)
    assert opened is not None
    assert opened.value == 1


@pytest.mark.parametrize(
    "text",
    ["secret", MASTER[:-8], f"{MASTER},x", "A" * 44 + "é"],
    ids=["no key", "cut off", "with something behind", "not ASCII"],
)
def test_what_is_no_master_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(InvalidSetting, match="is no master key") as refused:
        MasterKeys.read(text)
    assert text not in str(refused.value)
    assert MASTER not in str(refused.value)


def test_master_keys_are_read_in_any_base64_and_shown_nowhere() -> None:
    keys = MasterKeys.read(f"\n{MASTER}\n{new_master_key()},{new_master_key().rstrip('=')} ")
    assert len(keys.fingerprints) == 3
    assert keys.current == MasterKeys.read(MASTER).current
    assert MASTER not in repr(keys) + str(keys)
