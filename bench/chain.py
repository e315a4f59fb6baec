"""What the hash chain costs: appends with it beside appends without, in turn, on the same server.

    python bench/chain.py [--appends N] [--json FILE]

The same registrations through the same function; one namespace has a copy of it without the link.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from horolog.application.decision import Decision, decide_on_job
from horolog.domain.definition import JobDefinition
from horolog.domain.job_events import Registered
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.log import PostgresLog
from horolog.infrastructure.postgres.migrate import migrate

_LINK = re.compile(
    r"IF link_events > 0 THEN.*?END IF;|sha256\(string_agg\(.*?ORDER BY a\.position\)\)", re.DOTALL
)


def without_chain(database: Database) -> None:
    """Puts a copy of ``append`` into the namespace that makes no links."""
    with database.session() as connection:
        row = connection.execute(
            "SELECT pg_get_functiondef(p.oid) FROM pg_proc p"
            " WHERE p.pronamespace = %s::regnamespace AND p.proname = 'append'",
            (database.namespace,),
        ).fetchone()
        assert row is not None
        text, count = _LINK.subn(lambda m: "" if m[0].startswith("IF") else "NULL", row[0])
        assert count == 2, "the function has changed: this no longer takes the link out of it"
        connection.execute(text.encode())


def registrations(size: int) -> Iterator[list[Decision]]:
    """Batches that are ready to be appended: what is measured is the log."""
    now = datetime.now(UTC)
    definition = JobDefinition(
        name="bench.job",
        schedule={"kind": "every", "seconds": 60.0},
        payload={"customer": "ann", "amount": 10, "note": "x" * 100},
    )
    event = Registered(definition=definition, partition=3, next_fire=now, tzdata="2025.2")
    while True:
        yield [decide_on_job(None, uuid4(), [event])[0] for _ in range(size)]


def seconds_of_each(logs: list[PostgresLog], size: int, appends: int) -> list[float]:
    """The median time of an append to each log; one after the other, so that a drift of the machine
    meets both."""
    spent: list[list[float]] = [[] for _ in logs]
    batches = registrations(size)
    for number in range(appends):
        order = range(len(logs)) if number % 2 else reversed(range(len(logs)))
        for which in order:
            batch = next(batches)
            started = time.perf_counter()
            logs[which].append(batch)
            spent[which].append(time.perf_counter() - started)
    return [median(times) for times in spent]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--appends", type=int, default=30, help="of 1,000 events each")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="horolog-bench-") as directory:
        servers = EmbeddedServers(Path(directory) / "home")
        try:
            url = servers.ensure().database_url
            chained, plain = Database(url, "chained"), Database(url, "plain")
            for database in (chained, plain):
                migrate(database)
            without_chain(plain)
            logs = [PostgresLog(chained), PostgresLog(plain)]
            for size, appends in ((1, 40), (100, 4), (1_000, 1)):
                with_it, without = seconds_of_each(logs, size, appends * arguments.appends)
                rows.append(
                    {
                        "events_in_an_append": size,
                        "ms_with_chain": round(with_it * 1e3, 3),
                        "ms_without": round(without * 1e3, 3),
                        "events_per_s_with_chain": round(size / with_it),
                        "ratio": round(without / with_it, 3),
                    }
                )
                print(json.dumps(rows[-1]))
            for database in (chained, plain):
                database.close()
        finally:
            servers.stop()
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
