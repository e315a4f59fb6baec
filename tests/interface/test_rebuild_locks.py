"""While a rebuild holds the log lock it touches no more rows, however much there is to rebuild.

What is promised is that nobody waits 100 ms for it. How long a lock is held on a busy machine says
nothing of that, so these tests count what is done under it: the rows that a transaction has read or
written, as Postgres counts them, and the events that are caught up with. `bench/rebuild.py`
measures how long it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from horolog import Every, JobSpec, Scheduler
from horolog.application.rebuild import filling, rebuilding
from horolog.infrastructure.postgres.rebuild import shadow as shadows
from horolog.interface.projections import Projections

if TYPE_CHECKING:
    from horolog.infrastructure.postgres.database import Connection, Database

_TOUCHED = """
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd
                        + n_tup_del), 0)::int
    FROM pg_stat_xact_user_tables
"""


@dataclass
class UnderLock:
    """Rows that were touched each time under the log lock, and events that were caught up with."""

    rows: list[int] = field(default_factory=list[int])
    events: list[int] = field(default_factory=list[int])
    before: int = 0


def touched(connection: Connection) -> int:
    """Also what was touched by transactions before, as long as Postgres has not added it up."""
    ((rows,),) = connection.execute(_TOUCHED).fetchall()
    return rows


@pytest.fixture
def under_lock(monkeypatch: pytest.MonkeyPatch) -> UnderLock:
    seen = UnderLock()
    exchange = shadows.PostgresShadow._exchange  # pyright: ignore[reportPrivateUsage]
    take = shadows._Snapshot.take  # pyright: ignore[reportPrivateUsage]
    last = filling.Filling.last

    def exchanged(self: Any, old: Any) -> None:
        exchange(self, old)
        seen.rows.append(touched(self._main) - seen.before)

    def taken(self: Any) -> None:
        before = touched(self.connection)
        take(self)
        seen.rows.append(touched(self.connection) - before)

    def caught_up(self: Any) -> bool:
        before, seen.before = self.pace.events, touched(self._shadow._main)
        done = last(self)
        seen.events.append(self.pace.events - before)
        return done

    monkeypatch.setattr(shadows.PostgresShadow, "_exchange", exchanged)
    monkeypatch.setattr(shadows._Snapshot, "take", taken)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(filling.Filling, "last", caught_up)
    return seen


def test_ten_times_the_jobs_are_exchanged_under_the_lock_with_the_same_rows(
    database: Database, scheduler: Scheduler, under_lock: UnderLock
) -> None:
    with Projections(database.url, namespace=database.namespace) as projections:
        for count in (100, 900):
            specs = [JobSpec("work", schedule=Every(3_600)) for _ in range(count)]
            assert len(list(scheduler.register_many(specs))) == count
            assert projections.rebuild().exchanged
    few, many = under_lock.rows[:2], under_lock.rows[2:]
    assert few[0] == many[0] == 0
    assert max(few[1], many[1]) < 4 * 64 + 20, "all partitions' leases, and the rebuild's own rows"
    assert under_lock.events == [0, 0] * 2


def test_what_came_meanwhile_is_caught_up_with_under_the_lock_only_where_it_is_little(
    database: Database, scheduler: Scheduler, under_lock: UnderLock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(filling, "LAST_WINDOW", 10)
    waiting = [4, 40, 1]
    fill = filling.Filling.fill

    def overtaken(self: Any) -> None:
        fill(self)
        if waiting:
            count = waiting.pop()
            for _ in range(count):
                scheduler.register("new", schedule=Every(60))

    monkeypatch.setattr(filling.Filling, "fill", overtaken)
    with Projections(database.url, namespace=database.namespace) as projections:
        assert projections.rebuild().exchanged
        assert projections.verify().ok
    assert max(under_lock.events) <= 10
    assert under_lock.events[:2] == [0, 4], "forty were too many"


def test_who_waits_for_a_table_under_the_lock_lets_the_others_pass_in_time() -> None:
    wait_ms = int(shadows.EXCHANGE_WAIT.removesuffix("ms"))
    assert wait_ms < 100
    assert wait_ms <= rebuilding.PAUSE_S * 1_000, "as long as it held them up, they have their turn"
