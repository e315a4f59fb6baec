"""Servers for a measurement, with a filled log that can be kept: filling takes longer than asking.

With ``--home DIR`` the servers' home stays there, and a log of the same size is found again;
without it everything is temporary. ``--fill-only`` ends when the log is filled, so that the filling
can be done while others work, and the asking when nobody does.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter

from bench.filled_log import Filled, fill

from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate
from horolog.interface.settings import Settings


@dataclass(frozen=True)
class Kept:
    """A namespace on servers that run, and what it was filled with."""

    servers: EmbeddedServers
    settings: Settings
    database: Database
    filled: Filled


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--home`` and ``--fill-only``."""
    parser.add_argument("--home", type=Path, help="keep the servers and the log here")
    parser.add_argument("--fill-only", action="store_true", help="fill the log, and ask nothing")


@contextmanager
def kept_log(
    home: Path | None, *, jobs: int, rounds: int, days: float, batch: int = 1
) -> Generator[Kept]:
    """The servers with a log that was filled with that, now or by an earlier run."""
    with ExitStack() as stack:
        if home is None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="horolog-bench-")))
        servers = EmbeddedServers(home / "home")
        endpoints = servers.ensure()
        stack.callback(servers.stop)
        namespace = f"log_{jobs}_{rounds}_{batch}"
        database = Database(endpoints.database_url, namespace)
        stack.callback(database.close)
        migrate(database)
        note = home / f"{namespace}.json"
        if note.exists():
            stated = json.loads(note.read_text())
            for name in ("begin", "end"):
                stated[name] = datetime.fromisoformat(stated[name])
            filled = Filled(**stated)
        else:
            filled = _filled(database, jobs, rounds, days, batch)
            note.write_text(json.dumps(asdict(filled), default=datetime.isoformat))
        settings = Settings.read(
            endpoints.database_url,
            nats_url=endpoints.nats_url,
            namespace=namespace,
            environment={},
        )
        yield Kept(servers, settings, database, filled)


def _filled(database: Database, jobs: int, rounds: int, days: float, batch: int) -> Filled:
    began = perf_counter()
    filled = fill(
        database,
        jobs=jobs,
        rounds=rounds,
        days=days,
        batch=batch,
        watch=lambda runs: print(f"\r{3 * runs:,} events", end="", file=sys.stderr),
    )
    seconds = perf_counter() - began
    print(
        f"\r{filled.events:,} events in {seconds:.0f} s ({filled.events / seconds:,.0f}/s)",
        file=sys.stderr,
    )
    return filled
