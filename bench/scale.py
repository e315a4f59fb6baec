"""`make bench-scale`: what stays flat as a namespace grows, and what does not.

    python bench/scale.py [--only CURVE,… [--sizes N,…]] [--long] [--occurrences N] [--json FILE]

Four curves, each point of them a fresh namespace on servers with production durability: the whole
path (one scanner and one worker process, 5,000 occurrences due at one instant), CPU microseconds of
each process, and what a client asks:

    future       other jobs of the far future in the index: 0 to 1,000,000 (10,000,000 with --long)
    log          events that the log holds already: 0 to 5,000,000 (50,000,000 with --long)
    workers      worker processes: 1 to 4
    partitions   partitions of the namespace, all led by one scanner: 1 to 64

`flat` is the greatest figure of a curve over its smallest: 1 is flat. Curves that the JSON file has
already, from a run before, stay in it, so that they can be measured one by one.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import whole_path
from bench.filled_log import fill

from horolog import Every, Scheduler
from horolog.infrastructure.embedded import EmbeddedServers, Endpoints
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import PARTITIONS, migrate
from horolog.interface.settings import Settings

ASKED = 100
"""How often each question is asked; the figure is the median."""

_LATER = """
    UPDATE :schema.next_runs SET due_at = due_at + interval '300 days',
                                 fire_time = fire_time + interval '300 days'
    WHERE kind = 'job'
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a curve. CPU is of one occurrence of the whole path."""

    curve: str
    size: int
    per_second: float
    first_ms: float
    scanner_us: float
    worker_us: float
    postgres_us: float
    history_ms: float
    register_ms: float


class Curves:
    """One server pair; each point has a namespace of its own."""

    def __init__(self, endpoints: Endpoints, occurrences: int, logs: Path) -> None:
        self._endpoints = endpoints
        self._occurrences = occurrences
        self._logs = logs
        self._number = 0

    def future(self, size: int) -> Point:
        return self._measured("future", size, self._fresh(), others=size)

    def log(self, size: int) -> Point:
        settings = self._fresh()
        if size:
            database = Database(settings.database_url(), settings.namespace)
            try:
                fill(database, jobs=1_000, rounds=size // 3_000, days=30.0, watch=_watch)
                # They are to stand still while the new ones are measured.
                database.query(database.sql(_LATER + " RETURNING 1"))
            finally:
                database.close()
        return self._measured("log", size, settings)

    def workers(self, size: int) -> Point:
        return self._measured("workers", size, self._fresh(), workers=size)

    def partitions(self, size: int) -> Point:
        return self._measured("partitions", size, self._fresh(size))

    def _fresh(self, partitions: int = PARTITIONS) -> Settings:
        self._number += 1
        url, namespace = self._endpoints.database_url, f"scale_{self._number}"
        database = Database(url, namespace)
        try:
            migrate(database, partitions=partitions)
        finally:
            database.close()
        return Settings.read(
            url, nats_url=self._endpoints.nats_url, namespace=namespace, environment={}
        )

    def _measured(
        self, curve: str, size: int, settings: Settings, *, others: int = 0, workers: int = 1
    ) -> Point:
        done = whole_path.run(
            settings, self._occurrences, logs=self._logs, others=others, workers=workers
        )
        history_ms, register_ms = asked(settings)
        return Point(
            curve, size, done.per_second, done.first_s * 1e3, done.scanner_cpu_us,
            done.worker_cpu_us, done.postgres_cpu_us, history_ms, register_ms,
        )  # fmt: skip


def asked(settings: Settings) -> tuple[float, float]:
    """Milliseconds of a run's history, of runs from all over the log, and of a registration."""
    with Scheduler(settings=settings) as scheduler:
        now = datetime.now(UTC)
        chosen = random.Random(1)
        history: list[float] = []
        while len(history) < ASKED:
            since = now - timedelta(days=30 * chosen.random())
            found = scheduler.occurrences(since=since, limit=1)
            began = perf_counter()
            assert scheduler.history(found[0].id)
            history.append(perf_counter() - began)
        registered: list[float] = []
        for _ in range(ASKED):
            began = perf_counter()
            scheduler.register("ping", schedule=Every(86_400, anchor=now + timedelta(days=1)))
            registered.append(perf_counter() - began)
    return median(history) * 1e3, median(registered) * 1e3


def _watch(runs: int) -> None:
    print(f"\r{3 * runs:,} events", end="\r", file=sys.stderr)


def flat(values: list[float]) -> float:
    """The greatest over the smallest."""
    return max(values) / max(min(values), 1e-9)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="future,log,workers,partitions")
    parser.add_argument("--sizes", help="of the one curve that --only names, such as 0,500000")
    parser.add_argument("--long", action="store_true", help="with the greatest sizes (an hour)")
    parser.add_argument("--occurrences", type=int, default=5_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = {
        "future": [0, 10_000, 100_000, 1_000_000] + ([10_000_000] if given.long else []),
        "log": [0, 500_000, 5_000_000] + ([50_000_000] if given.long else []),
        "workers": [1, 2, 4],
        "partitions": [1, 8, 64],
    }
    chosen = given.only.split(",")
    if unknown := set(chosen) - set(sizes):
        parser.error(f"no curve is called {', '.join(sorted(unknown))}")
    if given.sizes is not None:
        if len(chosen) != 1:
            parser.error("--sizes are those of one curve: name it with --only")
        sizes[chosen[0]] = [int(size) for size in given.sizes.split(",")]
    kept: list[dict[str, Any]] = []
    if given.json is not None and given.json.exists():
        kept = [one for one in json.loads(given.json.read_text()) if one["curve"] not in chosen]
    points: list[Point] = []
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        try:
            curves = Curves(servers.ensure(), given.occurrences, Path(directory))
            measures: dict[str, Callable[[int], Point]] = {
                "future": curves.future,
                "log": curves.log,
                "workers": curves.workers,
                "partitions": curves.partitions,
            }
            for curve in chosen:
                for size in sizes[curve]:
                    points.append(measures[curve](size))
                    # What was measured stays, whatever becomes of the rest.
                    if given.json is not None:
                        document = kept + [asdict(point) for point in points]
                        given.json.write_text(json.dumps(document, indent=1) + "\n")
                show([point for point in points if point.curve == curve])
        finally:
            servers.stop("immediate")
    return 0


def show(points: list[Point]) -> None:
    """One curve as a table."""
    table = Table(title=points[0].curve)
    columns = [name for name in asdict(points[0]) if name != "curve"]
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right")
    for point in points:
        values = asdict(point)
        table.add_row(f"{point.size:,}", *(f"{values[name]:,.1f}" for name in columns[1:]))
    spread = [flat([asdict(point)[name] for point in points]) for name in columns[1:]]
    table.add_section()
    table.add_row("flat", *(f"{value:.2f}" for value in spread))
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
