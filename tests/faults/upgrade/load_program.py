"""Load of a release's own client: registers jobs that fire soon, until its input is closed.

    python load_program.py DATABASE_URL NAMESPACE SECONDS_BETWEEN

At the end it prints, as JSON, the jobs that it registered and how long the slowest took. Runs
under whatever release is on the path.
"""

import json
import select
import sys
from datetime import UTC, datetime, timedelta
from time import monotonic

from horolog import Once, Retry, Scheduler

HANDLERS = ("transactional", "idempotent", "plain-def")


def main(url: str, namespace: str, pause_s: float) -> None:
    jobs: list[str] = []
    slowest_s = 0.0
    with Scheduler(url, namespace=namespace) as scheduler:
        while not select.select([sys.stdin], [], [], pause_s)[0]:
            begin = monotonic()
            job = scheduler.register(
                HANDLERS[len(jobs) % len(HANDLERS)],
                schedule=Once(datetime.now(UTC) + timedelta(seconds=0.2)),
                retry=Retry(max_attempts=1000, base=0.05, cap=0.5),
            )
            slowest_s = max(slowest_s, monotonic() - begin)
            jobs.append(str(job.id))
    print(json.dumps({"jobs": jobs, "slowest_s": slowest_s}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
