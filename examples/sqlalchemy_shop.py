"""A shop on SQLAlchemy: an order with its job in a transaction, a bill with its outcome in another.

    horolog dev sqlalchemy_shop:worker            # with the tables of Base in its database

The first transaction is the caller's own: `place` may be rolled back, and then there is no job. The
second is the handler's: with `transactional=True` the bill and the run's success are committed
together, so a bill is written exactly once, whatever dies in between.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from horolog import Job, Once, Run, Scheduler, Worker


class Base(DeclarativeBase):
    """The tables of the shop."""


class Order(Base):
    """What somebody ordered."""

    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[int]


class Bill(Base):
    """What was billed; `key` is that of the run which did it."""

    __tablename__ = "bills"
    order: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str]


def place(scheduler: Scheduler, session: Session, order: Order, at: datetime) -> Job:
    """The order and its job: kept together by the caller's commit, or not at all."""
    session.add(order)
    session.flush()
    return scheduler.register(
        "orders.bill",
        schedule=Once(at),
        payload={"order": order.number},
        key=f"bill-{order.number}",
        reason="an order was placed",
        connection=session,
    )


# The transaction of a run belongs to Horolog, which commits it with the run's success: on its
# connection SQLAlchemy neither commits nor rolls back nor closes. Savepoints are its own.
_connection: ContextVar[Any] = ContextVar("connection")
_engine = create_engine(
    "postgresql+psycopg://", creator=lambda: _connection.get(), poolclass=NullPool,
    use_native_hstore=False,
)  # fmt: skip


def _leave(connection: object) -> None:
    """What Horolog does at the end of the run."""


for _name in ("do_commit", "do_rollback", "do_close", "do_terminate"):
    setattr(_engine.dialect, _name, _leave)


@contextmanager
def session_of(run: Run) -> Generator[Session]:
    """A session in the transaction of the run; what it holds is flushed at the end."""
    token = _connection.set(run.connection)
    try:
        with Session(_engine) as session:
            yield session
            session.flush()
    finally:
        _connection.reset(token)


worker = Worker()


@worker.handles("orders.bill", transactional=True)
def bill(run: Run, order: int) -> dict[str, int]:
    with session_of(run) as session:
        found = session.get_one(Order, order)
        session.add(Bill(order=found.number, key=run.key))
        return {"billed": found.amount}
