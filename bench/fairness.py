"""Whether a tenant's flood delays another: single jobs beside 100,000 that are due at one instant.

    python bench/fairness.py [--flood N] [--singles N] [--handler NAME] [--json FILE]

One scanner and one worker process, as production runs them. The flood and the single jobs go
through one ready queue. In `keys` each tenant has a concurrency key, and both keys were chosen to
share a partition, the worst case; in `handlers` a tenant is whose handler is called, over all
partitions; in `late` the singles are registered while the flood drains, due at once. `limited`
gives the flooding key a concurrency limit of 3, so that nearly all of it waits. Prints, for each,
how late the singles began, and exits with 1 if one began 2 s late or later.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import median
from uuid import UUID

import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from horolog import Job, JobSpec, Once, Scheduler
from horolog.domain.ids import partition_of
from horolog.infrastructure.embedded import EmbeddedServers, Endpoints
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.children import Child
from horolog.interface.settings import Settings

PARTITIONS = 64
SECONDS_EACH = 0.25
"""Between two single jobs."""

BOUND_S = 2.0


@dataclass(frozen=True, slots=True)
class Fairness:
    """Lateness in seconds from the fire time of a single job to the start of its handler."""

    scenario: str
    flood: int
    singles: int
    p50_s: float
    worst_s: float
    flood_left: int
    """How much of the flood was unfinished when the last single had run: it was there all along."""


def run(
    settings: Settings, scenario: str, flood: int, singles: int, handler: str, logs: Path
) -> Fairness:
    """Registers, waits for the instant, and measures when the last single job has run."""
    keys = "ours", next(f"theirs-{n}" for n in count() if _of(f"theirs-{n}") == _of("ours"))
    ours, theirs = keys if scenario != "handlers" else (None, None)
    limit = 3 if scenario == "limited" else None
    payload = {"seconds": 0.02} if handler == "sleep" else {}
    with _processes(settings, logs), Scheduler(settings=settings) as scheduler:
        due = datetime.now(UTC) + timedelta(seconds=5 + flood / 1_200)
        for _ in scheduler.register_many(
            JobSpec(
                handler,
                schedule=Once(due),
                payload=payload,
                concurrency_key=theirs,
                concurrency_limit=limit,
            )
            for _ in range(flood)
        ):
            pass
        single = [due + timedelta(seconds=1 + n * SECONDS_EACH) for n in range(singles)]
        jobs: list[Job] = []

        def register(at: datetime) -> None:
            jobs.append(scheduler.register("echo", schedule=Once(at), concurrency_key=ours))

        if scenario != "late":
            for at in single:
                register(at)
        remaining = (due - datetime.now(UTC)).total_seconds()
        assert remaining > 0, "registration was slower than expected: nothing was measured"
        time.sleep(remaining)
        for at in single if scenario == "late" else ():
            time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
            register(datetime.now(UTC))
        time.sleep(max(0.0, (single[-1] - datetime.now(UTC)).total_seconds()))
        late_s = _lateness(settings, [job.id for job in jobs])
        return Fairness(scenario, flood, singles, median(late_s), max(late_s), _left(settings))


def _of(key: str) -> int:
    return partition_of(key, PARTITIONS)


@contextmanager
def _processes(settings: Settings, logs: Path) -> Generator[None]:
    with ExitStack() as stack:
        for name, *arguments in (
            ("scanner", "scanner"),
            ("worker", "worker", "horolog.interface.samples:worker"),
        ):
            child = Child.start(name, arguments, settings, output=logs / f"{name}.log")
            stack.callback(child.wait, 30)
            stack.callback(child.tell_to_stop)
        yield


def _lateness(settings: Settings, jobs: list[UUID]) -> list[float]:
    """From each job's fire time to its Attempted, once all of them have begun."""
    query = sql.SQL(
        "SELECT extract(epoch FROM e.recorded_at - x.fire_time)::float8 FROM {} x"
        " JOIN {} e ON e.stream = x.id AND e.topic = 'occurrence.attempted.1'"
        " WHERE x.job_id = ANY (%s)"
    ).format(
        sql.Identifier(settings.namespace, "executions"),
        sql.Identifier(settings.namespace, "occurrence_events"),
    )
    deadline = time.monotonic() + 120
    with psycopg.connect(settings.database_url(), autocommit=True) as connection:
        while True:
            rows = connection.execute(query, (jobs,)).fetchall()
            if len(rows) == len(jobs):
                return [late for (late,) in rows]
            assert time.monotonic() < deadline, f"only {len(rows)} of {len(jobs)} have run"
            time.sleep(0.1)


def _left(settings: Settings) -> int:
    query = sql.SQL("SELECT count(*)::int FROM {}").format(
        sql.Identifier(settings.namespace, "next_runs")
    )
    with psycopg.connect(settings.database_url(), autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def _fresh(endpoints: Endpoints, scenario: str) -> Settings:
    migrate(Database(endpoints.database_url, f"fair_{scenario}"), partitions=PARTITIONS)
    return Settings.read(
        endpoints.database_url, nats_url=endpoints.nats_url, namespace=f"fair_{scenario}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--flood", type=int, default=100_000)
    parser.add_argument("--singles", type=int, default=40)
    parser.add_argument("--handler", default="ping", choices=["ping", "sleep"])
    parser.add_argument("--scenarios", default="keys,handlers,late,limited")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: list[Fairness] = []
    with tempfile.TemporaryDirectory(prefix="horolog-fair-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        endpoints = servers.ensure()
        try:
            for scenario in arguments.scenarios.split(","):
                results.append(
                    run(
                        _fresh(endpoints, scenario),
                        scenario,
                        arguments.flood,
                        arguments.singles,
                        arguments.handler,
                        Path(directory),
                    )
                )
                print(_line(results[-1]), flush=True)
        finally:
            for log in ("scanner", "worker"):
                text = (Path(directory) / f"{log}.log").read_text()
                if "Traceback" in text:
                    print(text[-3000:])
            servers.stop()
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    return 0 if all(result.worst_s < BOUND_S for result in results) else 1


def _line(result: Fairness) -> str:
    return (
        f"{result.scenario:9} {result.singles} single jobs beside {result.flood:,}:"
        f" p50 {result.p50_s * 1e3:,.0f} ms, worst {result.worst_s * 1e3:,.0f} ms late;"
        f" {result.flood_left:,} of the flood were unfinished then"
    )


if __name__ == "__main__":
    sys.exit(main())
