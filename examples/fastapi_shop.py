"""A FastAPI application whose orders schedule their bills.

    HOROLOG_DATABASE_URL=postgresql://… uvicorn fastapi_shop:app          # in examples/
    curl -X POST localhost:8000/orders/7

The scheduler is connected before the first request and closed after the last. With a connection of
SQLAlchemy or psycopg in the route, ``connection=`` makes the job part of its transaction.
"""

from datetime import UTC, datetime, timedelta

from fastapi import FastAPI, HTTPException

from horolog import Once
from horolog.fastapi import CurrentScheduler, scheduling

app = FastAPI(lifespan=scheduling())


@app.post("/orders/{number}", status_code=201)
async def order(number: int, scheduler: CurrentScheduler) -> dict[str, str]:
    """Bills the order in an hour."""
    known = await scheduler.register(
        "orders.bill",
        schedule=Once(datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)),
        payload={"order": number},
        key=f"bill-{number}",
        owner="shop",
    )
    return {"job": str(known.id), "status": known.status}


@app.delete("/orders/{number}")
async def withdraw(number: int, scheduler: CurrentScheduler) -> dict[str, str]:
    """The bill is not sent."""
    try:
        job = await scheduler.job(f"bill-{number}")
    except LookupError:
        raise HTTPException(404, f"there is no order {number}") from None
    return {"status": (await scheduler.cancel(job.id, reason="the order was withdrawn")).status}
