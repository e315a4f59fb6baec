"""examples/sqlalchemy_shop.py: an order with its job, a bill with its success, by SQLAlchemy."""

import runpy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from horolog import Retry, Scheduler, UnknownJob

SHOP = Path(__file__).parents[3] / "examples" / "sqlalchemy_shop.py"


@pytest.fixture
def shop() -> dict[str, Any]:
    return runpy.run_path(str(SHOP))


async def test_the_bill_and_the_success_are_one_transaction(
    leader: Any, working: Any, shop: dict[str, Any], database_url: str
) -> None:
    for table in shop["Base"].metadata.tables.values():
        table.schema = leader.namespace
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(database_url))
    shop["Base"].metadata.create_all(engine)
    order, bill = shop["Order"], shop["Bill"]
    with Session(engine) as session, Scheduler(database_url, namespace=leader.namespace) as client:
        shop["place"](client, session, order(number=1, amount=10), datetime.now(UTC))
        session.rollback()
        with pytest.raises(UnknownJob):
            client.job("bill-1")
        shop["place"](client, session, order(number=1, amount=10), datetime.now(UTC))
        session.commit()
        assert client.job("bill-1").payload == {"order": 1}

        retry = Retry(max_attempts=1)
        job = leader.register("orders.bill", {"order": 1}, retry=retry)
        twice = leader.register("orders.bill", {"order": 1}, retry=retry)  # its bill is there
        none = leader.register("orders.bill", {"order": 2}, retry=retry)
        async with working(shop["worker"]):
            done = await leader.fire(job, 1)
            await leader.until_all(done, "succeeded")
            refused = [*await leader.fire(twice, 1), *await leader.fire(none, 1)]
            await leader.until_all(refused, "dead")
        session.expire_all()
        (written,) = session.scalars(select(bill)).all()
        assert (written.order, written.key) == (1, str(done[0]))
    engine.dispose()
