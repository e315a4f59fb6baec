"""APScheduler 3: one-off jobs in its SQLAlchemy store on Postgres, a pool of threads."""

import threading
from datetime import UTC, datetime, timedelta
from time import perf_counter

from apscheduler.events import EVENT_JOB_EXECUTED
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from peer import Arguments, told


def ping() -> None:
    """Does nothing."""


def main(arguments: Arguments) -> None:
    url = arguments.url.replace("postgresql://", "postgresql+psycopg://")
    store = SQLAlchemyJobStore(url=url)
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None, "max_instances": 1},
        timezone=UTC,
    )
    scheduler.start(paused=True)
    now = datetime.now(UTC)
    for count, at in ((arguments.others, now + timedelta(days=300)), (arguments.jobs, now)):
        for _ in range(count):
            scheduler.add_job(ping, "date", run_date=at)
    done, finished = 0, threading.Event()

    def note(_: object) -> None:
        nonlocal done
        done += 1
        if done >= arguments.jobs:
            finished.set()

    scheduler.add_listener(note, EVENT_JOB_EXECUTED)
    began = perf_counter()
    scheduler.resume()
    finished.wait()
    told(arguments.jobs, perf_counter() - began)
    scheduler.shutdown()


if __name__ == "__main__":
    main(Arguments.read())
