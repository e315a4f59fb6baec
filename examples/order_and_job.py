"""An order and the job that bills it, in one transaction: both, or neither.

python examples/order_and_job.py       # embedded servers; an order that is kept, one that is not
"""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from horolog import Job, Once, Scheduler, UnknownJob
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate


def place(scheduler: Scheduler, connection: psycopg.Connection, order: int) -> Job:
    """The order and its job, in the transaction that is open on the connection."""
    connection.execute("INSERT INTO orders VALUES (%s)", (order,))
    return scheduler.register(
        "orders.bill",
        schedule=Once(datetime.now(UTC)),
        payload={"order": order},
        key=f"bill-{order}",
        reason="an order was placed",
        connection=connection,
    )


def main(url: str) -> None:
    with Scheduler(url, actor="shop") as scheduler, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (number int PRIMARY KEY)")
        connection.commit()

        kept = place(scheduler, connection, 1)
        connection.commit()
        found = scheduler.job(kept.id)
        print(f"order 1 was committed: job {found.key} is {found.status}")

        given_up = place(scheduler, connection, 2)
        connection.rollback()
        try:
            scheduler.job(given_up.id)
        except UnknownJob:
            print("order 2 was rolled back: it has no job")

        try:
            place(scheduler, connection, 1)
        except psycopg.errors.UniqueViolation:
            connection.rollback()
            print(f"order 1 once more was refused: {len(scheduler.jobs())} job in all")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="horolog-") as home:
        servers = EmbeddedServers(Path(home) / "home")
        try:
            address = servers.ensure().database_url
            database = Database(address, "horolog")
            migrate(database)
            database.close()
            main(address)
        finally:
            servers.stop()
