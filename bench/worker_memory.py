"""The memory of a worker after many runs: within 20 % of what it is after the first 10,000.

    python bench/worker_memory.py [--runs N]

Embedded servers, one scanner, one worker, no-op jobs that run once a second each; the
worker's resident memory is read when some 10,000 have run, and at the end. A million runs take
some minutes.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from horolog import Every, JobSpec, Scheduler
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.children import Child
from horolog.interface.settings import Settings

FIRST = 10_000
JOBS = 2_500
"""Each runs once a second."""
EVENTS_EACH = 3
"""Claimed, attempted, succeeded: by the log's position it is known how many have run."""
MOST_GROWTH = 0.2


def resident_mb(pid: int) -> float:
    """The resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def measure(settings: Settings, runs: int, logs: Path) -> tuple[float, float]:
    """Megabytes after the first 10,000 runs and after all of them."""
    with ExitStack() as stack, Scheduler(settings=settings) as scheduler:
        pids: dict[str, int] = {}
        for name, arguments in (
            ("scanner", ["scanner"]),
            ("worker", ["worker", "horolog.interface.samples:worker"]),
        ):
            child = Child.start(name, arguments, settings, output=logs / f"{name}.log")
            stack.callback(child.wait, 30)
            stack.callback(child.tell_to_stop)
            pids[name] = child.process.pid
        began, first_mb, told = time.monotonic(), 0.0, 0
        for _ in scheduler.register_many(JobSpec("ping", schedule=Every(1)) for _ in range(JOBS)):
            pass
        while (done := (scheduler.position() - JOBS) // EVENTS_EACH) < runs:
            if not first_mb and done >= FIRST:
                first_mb = resident_mb(pids["worker"])
            if done >= told + 100_000:
                told = done
                print(
                    f"{done:>9} runs, {time.monotonic() - began:>5.0f} s:"
                    f" {resident_mb(pids['worker']):.1f} MB",
                    flush=True,
                )
            time.sleep(0.2)
        return first_mb or resident_mb(pids["worker"]), resident_mb(pids["worker"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as folder:
        servers = EmbeddedServers(Path(folder, "home"))
        try:
            endpoints = servers.ensure()
            settings = Settings.read(
                endpoints.database_url, nats_url=endpoints.nats_url, namespace="memory"
            )
            database = Database(settings.database_url(), settings.namespace)
            migrate(database)
            database.close()
            first_mb, last_mb = measure(settings, options.runs, Path(folder))
        finally:
            servers.stop()
    growth = last_mb / first_mb - 1
    print(
        f"a worker's memory: {first_mb:.1f} MB after {FIRST} runs, {last_mb:.1f} MB after"
        f" {options.runs} ({growth:+.1%}; at most {MOST_GROWTH:+.0%})"
    )
    return 0 if growth <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
