"""One isolated job: from the commit of its registration as due to the start of its handler.

    python bench/isolated.py [--jobs N]

Embedded servers with their production durability, one scanner, one worker. Each job is registered
alone, due at once, when nothing else is under way; the handler says when it began, by the same
clock. Prints the median and the 90th percentile in milliseconds; the target is 15 at the median.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from horolog import Once, Run, Scheduler, Worker
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.children import Child
from horolog.interface.settings import Settings

TARGET_MS = 15.0
WARM_UP = 5
PLACE = "bench.isolated:worker"

worker = Worker()


@worker.handles("isolated")
async def isolated(run: Run) -> float:  # noqa: ARG001 - every handler gets its run
    """When it began."""
    return time.time()


def measure(settings: Settings, jobs: int, logs: Path) -> list[float]:
    """Milliseconds from each registration's return to its handler's start."""
    found: list[float] = []
    with ExitStack() as stack, Scheduler(settings=settings) as scheduler:
        for name, arguments in (("scanner", ["scanner"]), ("worker", ["worker", PLACE])):
            child = Child.start(name, arguments, settings, output=logs / f"{name}.log")
            stack.callback(child.wait, 10)
            stack.callback(child.tell_to_stop)
        for _ in range(jobs + WARM_UP):
            job = scheduler.register("isolated", schedule=Once.in_seconds(0, datetime.now(UTC)))
            committed = time.time()
            began = _result(scheduler, str(job.id))
            found.append((began - committed) * 1000)
            time.sleep(0.2)
    return found[WARM_UP:]


def _result(scheduler: Scheduler, job_id: str) -> float:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done = scheduler.occurrences(job_id=job_id, state="succeeded", limit=1)
        if done:
            events = scheduler.history(done[0].id)
            return float(events[-1].to_dict()["data"]["result"])
        time.sleep(0.05)
    raise AssertionError("the job did not run within a minute")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as folder:
        servers = EmbeddedServers(Path(folder, "home"))
        try:
            endpoints = servers.ensure()
            settings = Settings.read(
                endpoints.database_url, nats_url=endpoints.nats_url, namespace="isolated"
            )
            database = Database(settings.database_url(), settings.namespace)
            migrate(database)
            database.close()
            took = measure(settings, options.jobs, Path(folder))
        finally:
            servers.stop()
    middle, last = median(took), quantiles(took, n=10)[-1]
    print(
        f"one isolated job, from its commit to its handler's start: median {middle:.1f} ms"
        f" (target {TARGET_MS:.0f}), 90 % within {last:.1f} ms, {options.jobs} jobs"
    )
    return 0 if middle <= TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
