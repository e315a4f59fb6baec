"""A stage for measurements of the scanner: servers, namespaces, processes, what the log says."""

import argparse
import json
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.processes.children import Child
from horolog.interface.settings import Settings

WORKER = ("worker", "horolog.interface.samples:worker")


class Stage:
    """One server pair with its production durability; a namespace for each measurement."""

    def __init__(self, servers: EmbeddedServers, folder: Path) -> None:
        self._endpoints = servers.ensure()
        self._folder = folder
        self._number = 0
        self.connection = psycopg.connect(self._endpoints.database_url, autocommit=True)

    def fresh(self) -> Settings:
        """A migrated, empty namespace."""
        self._number += 1
        url, namespace = self._endpoints.database_url, f"bench_{self._number}"
        migrate(self.database(Settings.read(url, namespace=namespace, environment={})))
        return Settings.read(url, nats_url=self._endpoints.nats_url, namespace=namespace)

    def database(self, settings: Settings) -> Database:
        return Database(settings.database_url(), settings.namespace)

    @contextmanager
    def running(self, settings: Settings, *commands: Sequence[str]) -> Generator[list[Child]]:
        """Processes as production runs them, stopped at the end."""
        with ExitStack() as stack:
            children: list[Child] = []
            for number, arguments in enumerate(commands):
                words = self._folder / f"{settings.namespace}-{number}.log"
                child = Child.start(arguments[0], arguments, settings, output=words)
                stack.callback(child.wait, 30)
                stack.callback(child.tell_to_stop)
                children.append(child)
            yield children

    def ask(self, settings: Settings, statement: str, params: Any = None) -> list[Any]:
        query = self.database(settings).sql(statement)
        return self.connection.execute(query, params).fetchall()

    def until(self, settings: Settings, statement: str, params: Any = None) -> Any:
        """The first column of the first row, as soon as it is true."""
        deadline = time.monotonic() + 240
        while True:
            rows = self.ask(settings, statement, params)
            if rows and rows[0][0]:
                return rows[0][0]
            assert time.monotonic() < deadline, f"not within four minutes: {statement}"
            time.sleep(0.02)

    def until_led(self, settings: Settings) -> None:
        """Returns when every partition has a leader."""
        self.until(settings, "SELECT bool_and(instance IS NOT NULL) FROM :schema.partitions")

    def lateness(self, settings: Settings, name: str, since: datetime) -> list[float]:
        """Seconds from each fire time since then to the start of its handler, sorted."""
        rows = self.ask(
            settings,
            "SELECT extract(epoch FROM e.recorded_at - x.fire_time)::float8"
            " FROM :schema.executions x"
            " JOIN :schema.jobs j ON j.id = x.job_id AND j.name = %s"
            " JOIN :schema.occurrence_events e ON e.stream = x.id"
            "  AND e.topic = 'occurrence.attempted.1'"
            " WHERE x.fire_time >= %s ORDER BY 1",
            (name, since),
        )
        return [late for (late,) in rows]


@contextmanager
def stage() -> Generator[Stage]:
    """Servers in a temporary home, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        try:
            made = Stage(servers, Path(directory))
            yield made
            made.connection.close()
        finally:
            servers.stop()


def quantile(values: Sequence[float], part: float) -> float:
    """Of sorted values; 0 of none."""
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


def resident_mb(pid: int) -> float:
    """The memory of a process now."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def peak_mb(pid: int) -> float:
    """The most that it ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def options(words: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=words, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="the figures as a file")
    return parser


def show(title: str, rows: list[dict[str, Any]], file: Path | None) -> None:
    """A table for people, and the same as JSON where a file was named."""
    table = Table(title=title)
    names = list(rows[0])
    for name in names:
        table.add_column(name, justify="right" if name != "what" else "left")
    for row in rows:
        table.add_row(*(f"{v:,.1f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=120).print(table)
    if file is not None:
        file.write_text(json.dumps(rows, indent=1))
