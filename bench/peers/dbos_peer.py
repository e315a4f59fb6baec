"""DBOS: an empty workflow on a queue, polled often, with its log off."""

import time
from time import perf_counter

import psycopg
from dbos import DBOS, DBOSClient
from peer import Arguments, told

POLL_S = 0.05
ENQUEUED_PER_S = 100
"""A cautious guess that decides how far ahead the due instant is set."""
PENDING = "SELECT count(*) FROM dbos.workflow_status WHERE queue_name = 'ping' AND status IN {}"


def main(arguments: Arguments) -> None:
    began: list[float] = []

    @DBOS.workflow(name="ping")
    def ping() -> None:
        if not began:
            began.append(perf_counter())

    DBOS(
        config={
            "name": "peer",
            "system_database_url": arguments.url,
            "sys_db_pool_size": 20,
            "log_level": "ERROR",
            "application_version": "1",
        }
    )
    DBOS.launch()
    DBOS.register_queue("ping", polling_interval_sec=POLL_S)
    client = DBOSClient(system_database_url=arguments.url)
    due = time.time() + 3 + arguments.jobs / ENQUEUED_PER_S
    for count, at in ((arguments.others, due + 300 * 86_400), (arguments.jobs, due)):
        for _ in range(count):
            client.enqueue(
                {
                    "queue_name": "ping",
                    "workflow_name": "ping",
                    "app_version": "1",
                    "delay_seconds": at - time.time(),
                }
            )
    assert time.time() < due, "enqueueing was slower than expected: nothing was measured"
    client.destroy()
    with psycopg.connect(arguments.url, autocommit=True) as connection:
        while True:
            row = connection.execute(PENDING.format("('ENQUEUED', 'PENDING')")).fetchone()
            if began and row is not None and row[0] == 0:
                break
            time.sleep(0.05)
    told(arguments.jobs, perf_counter() - began[0])
    DBOS.destroy()


if __name__ == "__main__":
    main(Arguments.read())
