"""A bug damages the next-run index; it is found, and put right from the log while jobs fire.

    python examples/broken_projection.py

It works on the namespace that the environment leads to (HOROLOG_DATABASE_URL, as every command), or
on servers of its own in a temporary folder. The lines with a dollar sign are what a person types.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg
from psycopg import sql

from horolog import Cron, Every, Job, Scheduler, Settings
from horolog.infrastructure.embedded import EmbeddedServers
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import migrate


def main() -> int:
    with somewhere() as settings, Scheduler(settings=settings) as scheduler:
        nightly = scheduler.register(
            "report", schedule=Cron("30 2 * * *", zone="America/New_York"), key="nightly-report"
        )
        for number in range(3):
            scheduler.register("ping", schedule=Every(300), key=f"ping-{number}")
        print(f"the report runs at {local(nightly)} in New York\n")

        print("# A script that was to move one customer's reports by a day forgets its WHERE, and")
        print("# loses a row on the way.")
        damage(settings, spared=nightly.id)
        late = scheduler.job(nightly.id)
        print(f"the report would run at {local(late)}, and nobody has asked for that\n")

        typed(settings, 1, "projection", "verify", "next_runs")
        typed(settings, 0, "projection", "rebuild", "next_runs", "--reason", "script without WHERE")
        typed(settings, 0, "projection", "verify", "next_runs")

        mended = scheduler.job(nightly.id)
        assert mended.next_run == nightly.next_run
        print(f"the report runs at {local(mended)} again; the log was right all the time")
    return 0


def damage(settings: Settings, *, spared: UUID) -> None:
    """What should not happen: somebody writes to a read model by hand, and loses another's row."""
    index = sql.Identifier(settings.namespace, "next_runs")
    with psycopg.connect(settings.database_url()) as connection:
        connection.execute(
            sql.SQL("UPDATE {} SET due_at = due_at + %s, fire_time = fire_time + %s").format(index),
            (timedelta(days=1), timedelta(days=1)),
        )
        connection.execute(
            sql.SQL(
                "DELETE FROM {index} WHERE id = (SELECT id FROM {index} WHERE id <> %s LIMIT 1)"
            ).format(index=index),
            (spared,),
        )


def typed(settings: Settings, status: int, *command: str) -> None:
    """Shows a command as a person types it, and what it says."""
    words = [f'"{word}"' if " " in word else word for word in command]
    print(f"$ horolog {' '.join(words)}")
    program = [sys.executable, "-m", "horolog.interface.cli.main", *command]
    place = ["--database-url", settings.database_url(), "--namespace", settings.namespace]
    done = subprocess.run([*program, *place], capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    assert done.returncode == status, done


def local(job: Job) -> str:
    assert job.next_run is not None
    return f"{job.next_run.astimezone(ZoneInfo('America/New_York')):%d %b %H:%M}"


@contextmanager
def somewhere() -> Generator[Settings]:
    """Where to work: see the first lines."""
    if os.environ.get("HOROLOG_DATABASE_URL"):
        settings = Settings.read()
        migrate(Database(settings.database_url(), settings.namespace))
        yield settings
        return
    with tempfile.TemporaryDirectory() as folder:
        servers = EmbeddedServers(Path(folder) / "home")
        try:
            settings = Settings.read(servers.ensure().database_url)
            migrate(Database(settings.database_url(), settings.namespace))
            yield settings
        finally:
            servers.stop()


if __name__ == "__main__":
    sys.exit(main())
