"""`make bench`: what it costs, beside the limit of the same server in the same run.

    python bench/run.py [--occurrences N] [--runs N] [--json FILE] [--only PART]

Starts embedded servers with their production durability (fsync on) in a temporary home, measures
each figure several times in turn with its limit, prints medians and ratios, verifies the log after
each whole path, and exits with 1 if `horolog verify` finds a violation.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import process_time

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import limit, registration, starting, whole_path

from horolog import Scheduler
from horolog.infrastructure.embedded import EmbeddedServers, Endpoints
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.settings import Settings
from horolog.interface.verification import verify_log


@dataclass(frozen=True, slots=True)
class Row:
    """A figure and the limit in the same unit; ``ratio`` is the first over the second.

    What is to be reached: ``least`` is the smallest ratio, ``most`` the largest figure.
    """

    name: str
    unit: str
    figure: float
    limit: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.limit is None else self.figure / self.limit

    @property
    def reached(self) -> bool | None:
        """``None`` where nothing is to be reached."""
        if self.most is not None:
            return self.figure <= self.most
        return None if self.least is None or self.ratio is None else self.ratio >= self.least


class Bench:
    """One server pair; each measurement gets a namespace of its own, so that none sees another."""

    def __init__(self, endpoints: Endpoints, runs: int, logs: Path) -> None:
        self._endpoints = endpoints
        self._runs = runs
        self._logs = logs
        self._namespaces = 0
        self.violations = 0

    def fresh(self) -> Settings:
        self._namespaces += 1
        namespace = f"bench_{self._namespaces}"
        url = self._endpoints.database_url
        migrate(Database(url, namespace))
        return Settings.read(url, nats_url=self._endpoints.nats_url, namespace=namespace)

    def in_turn(self, *measures: Callable[[], float]) -> list[float]:
        """The median of each, measured in turn so that a drift of the machine meets all of them."""
        results: list[list[float]] = [[] for _ in measures]
        for _ in range(self._runs):
            for found, measure in zip(results, measures, strict=True):
                found.append(measure())
        return [median(found) for found in results]

    def registration(self, jobs: int) -> list[Row]:
        url = self._endpoints.database_url

        def scheduler() -> Scheduler:
            return Scheduler(settings=self.fresh())

        one, raw_one = self.in_turn(
            lambda: registration.one_by_one_per_second(scheduler(), jobs // 20),
            lambda: registration.raw_rows_per_second(url, jobs // 20, 1),
        )
        cpu_us: list[float] = []

        def register_many() -> float:
            began = process_time()
            per_second = registration.many_per_second(scheduler(), jobs)
            cpu_us.append((process_time() - began) / jobs * 1e6)
            return per_second

        many, raw_many = self.in_turn(
            register_many,
            lambda: registration.raw_rows_per_second(url, jobs, 1_000),
        )
        return [
            Row("registration, one at a time / single-row commits", "jobs/s", one, raw_one, 0.5),
            Row("register_many / raw unnest of the rows", "jobs/s", many, raw_many, 0.5),
            Row("CPU of the client, register_many", "µs/job", median(cpu_us)),
        ]

    def whole(self, runs: list[whole_path.WholePath], occurrences: int, workers: int) -> float:
        settings = self.fresh()
        done = whole_path.run(settings, occurrences, logs=self._logs, workers=workers)
        self.violations += verify_log(settings).violation_count
        runs.append(done)
        return done.per_second

    def path(self, occurrences: int) -> list[Row]:
        runs: list[whole_path.WholePath] = []
        url = self._endpoints.database_url
        speed, two, raw = self.in_turn(
            lambda: self.whole(runs, occurrences, 1),
            lambda: self.whole([], occurrences, 2),
            lambda: limit.occurrences_per_second(url, occurrences),
        )
        each = {name: median(getattr(run, name) for run in runs) for name in asdict(runs[0])}
        return [
            Row("whole path / raw unnest of its rows", "occurrences/s", speed, raw, 0.5),
            Row("two workers / one", "occurrences/s", two, speed, 1.2),
            Row("first success after the due instant", "ms", each["first_s"] * 1e3),
            Row("CPU of the scanner", "µs/occurrence", each["scanner_cpu_us"]),
            Row("CPU of the worker", "µs/occurrence", each["worker_cpu_us"]),
            Row("CPU of Postgres", "µs/occurrence", each["postgres_cpu_us"]),
            Row("CPU of NATS", "µs/occurrence", each["nats_cpu_us"]),
            Row("WAL", "bytes/occurrence", each["wal_bytes"], most=4_000),
            Row("disk, after vacuum", "bytes/occurrence", each["disk_bytes"], most=1_500),
        ]

    def future(self, occurrences: int, others: int) -> list[Row]:
        settings = self.fresh()

        def beside() -> float:
            done = whole_path.run(settings, occurrences, logs=self._logs, others=others)
            return done.per_second

        crowded, alone = self.in_turn(beside, lambda: self.whole([], occurrences, 1))
        idle = whole_path.idle_cpu_s_per_minute(settings, logs=self._logs)
        self.violations += verify_log(settings).violation_count
        beside_them = f"beside {others:,} future jobs"
        return [
            Row(f"whole path {beside_them} / alone", "occurrences/s", crowded, alone, 0.9),
            Row(f"CPU of Postgres, idle {beside_them}", "s/minute", idle, most=0.5),
        ]

    def starting(self) -> list[Row]:
        return [
            Row("import horolog", "ms", starting.import_ms(), most=250),
            Row(
                "from horolog import Scheduler / its libraries",
                "ms",
                starting.import_ms("from horolog import Scheduler"),
                starting.import_ms(starting.LIBRARIES),
            ),
            Row("horolog --help", "ms", starting.help_ms(), most=400),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--occurrences", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--others", type=int, default=1_000_000, help="future jobs")
    parser.add_argument("--only", choices=["starting", "registration", "path", "future"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        bench = Bench(servers.ensure(), arguments.runs, Path(directory))
        try:
            parts: dict[str, Callable[[], list[Row]]] = {
                "starting": bench.starting,
                "registration": lambda: bench.registration(arguments.jobs),
                "path": lambda: bench.path(arguments.occurrences),
                "future": lambda: bench.future(arguments.occurrences, arguments.others),
            }
            chosen = parts if arguments.only is None else {arguments.only: parts[arguments.only]}
            rows = [row for part in chosen.values() for row in part()]
        finally:
            servers.stop()
    show(rows, arguments.runs)
    print(f"violations: {bench.violations}")
    if arguments.json is not None:
        document = [asdict(row) | {"ratio": row.ratio, "reached": row.reached} for row in rows]
        arguments.json.write_text(json.dumps(document, indent=1))
    return 1 if bench.violations else 0


def show(rows: list[Row], runs: int) -> None:
    table = Table(title=f"medians of {runs} runs, each in turn with its limit")
    for heading in ("what", "unit"):
        table.add_column(heading)
    for heading in ("figure", "limit", "ratio", "to reach"):
        table.add_column(heading, justify="right")
    for row in rows:
        bound = "" if row.limit is None else f"{row.limit:,.0f}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        wanted = "" if row.least is None else f"≥ {row.least}"
        wanted = wanted if row.most is None else f"≤ {row.most:,}"
        mark = {None: "", True: " ✓", False: " ✗"}[row.reached]
        table.add_row(row.name, row.unit, f"{row.figure:,.1f}", bound, ratio, wanted + mark)
    Console(width=130).print(table)


if __name__ == "__main__":
    sys.exit(main())
