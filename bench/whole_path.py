"""The whole path: due occurrences that are claimed, published, attempted and finished.

One scanner and one worker process, as production runs them, on one Postgres and one NATS server;
every event is durable. All jobs come due at one instant; the clock runs from then until the last
occurrence has succeeded.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from bench.many_jobs import fill_jobs
from psycopg import sql

from horolog import JobSpec, Once, Scheduler
from horolog.infrastructure.postgres.database import Database
from horolog.interface.processes.children import Child
from horolog.interface.settings import Settings

SETTLING_S = 15.0
"""How long after their start processes are busy with it."""

_THERE = """
    SELECT (SELECT count(*) FROM :schema.jobs),
           (SELECT count(*)::int FROM :schema.executions WHERE state = 'succeeded')
"""
_SIZE = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relnamespace = %s::regnamespace AND relkind = 'r'
"""

PROBE = 1_000
"""Jobs of the far future whose registration tells how far ahead the due instant has to be."""


@dataclass(frozen=True, slots=True)
class WholePath:
    """Figures of one run; rates are occurrences per second, sizes bytes per occurrence."""

    occurrences: int
    per_second: float
    first_s: float
    wal_bytes: float
    disk_bytes: float
    scanner_cpu_us: float
    worker_cpu_us: float
    postgres_cpu_us: float
    nats_cpu_us: float


def run(
    settings: Settings, occurrences: int, *, workers: int = 1, logs: Path, others: int = 0
) -> WholePath:
    """Registers, waits for the instant, and measures until all have succeeded.

    ``others`` jobs in the far future stand in the index beside them; where the namespace has so
    many already, from a run before, none is added.
    """
    database = Database(settings.database_url(), settings.namespace)
    [[there, done]] = database.query(database.sql(_THERE))
    if there < others:
        far = datetime.now(UTC) + timedelta(days=30)
        fill_jobs(database, others - there, begin=far, spread_s=300 * 86_400.0)
    with ExitStack() as stack, Scheduler(settings=settings) as scheduler:
        scanner = _start(stack, "scanner", ["scanner"], settings, logs)
        pool = [
            _start(
                stack, f"worker-{n}", ["worker", "horolog.interface.samples:worker"], settings, logs
            )
            for n in range(workers)
        ]
        connection = stack.enter_context(psycopg.connect(settings.database_url(), autocommit=True))
        far = datetime.now(UTC) + timedelta(days=300)
        began = time.perf_counter()
        _register(scheduler, [far + timedelta(seconds=n) for n in range(PROBE)])
        each_s = (time.perf_counter() - began) / PROBE
        due = datetime.now(UTC) + timedelta(seconds=3 + 2 * each_s * occurrences)
        _register(scheduler, [due] * occurrences)
        remaining = (due - datetime.now(UTC)).total_seconds()
        assert remaining > 0, "registration was slower than expected: nothing was measured"
        time.sleep(remaining - 0.2)
        before, size = _wal(connection), _disk_bytes(connection, settings.namespace)
        cpu = [cpu_s(c.process.pid) for c in (scanner, *pool)]
        postgres, nats = postgres_cpu_s(connection), _nats_cpu_s()
        time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
        first_s, seconds = _wait_until_done(connection, settings.namespace, occurrences, done)
        spent = [cpu_s(c.process.pid) - s for c, s in zip((scanner, *pool), cpu, strict=True)]
        spent_postgres, spent_nats = postgres_cpu_s(connection) - postgres, _nats_cpu_s() - nats
        wal = _wal(connection) - before
        _vacuum(connection, settings.namespace)
        return WholePath(
            occurrences=occurrences,
            per_second=occurrences / seconds,
            first_s=first_s,
            wal_bytes=wal / occurrences,
            disk_bytes=(_disk_bytes(connection, settings.namespace) - size) / occurrences,
            scanner_cpu_us=spent[0] / occurrences * 1e6,
            worker_cpu_us=sum(spent[1:]) / occurrences * 1e6,
            postgres_cpu_us=spent_postgres / occurrences * 1e6,
            nats_cpu_us=spent_nats / occurrences * 1e6,
        )


def _register(scheduler: Scheduler, at: Sequence[datetime]) -> None:
    for _ in scheduler.register_many(JobSpec("ping", schedule=Once(each)) for each in at):
        pass


def _start(
    stack: ExitStack, name: str, arguments: list[str], settings: Settings, logs: Path
) -> Child:
    child = Child.start(name, arguments, settings, output=logs / f"{name}.log")
    stack.callback(child.wait, 10)
    stack.callback(child.tell_to_stop)
    return child


def _wait_until_done(
    connection: psycopg.Connection[tuple[Any, ...]], namespace: str, occurrences: int, before: int
) -> tuple[float, float]:
    """Seconds to the first and to the last success; ``before`` there were so many.

    Counting the rows costs the server time too, so it is done less often while many are missing.
    """
    began = time.perf_counter()
    first = 0.0
    executions = sql.Identifier(namespace, "executions")
    query = sql.SQL("SELECT count(*)::int FROM {} WHERE state = 'succeeded'").format(executions)
    some = sql.SQL("SELECT count(*)::int FROM (SELECT FROM {} LIMIT {}) one")
    while not first:
        row = connection.execute(some.format(executions, before + 1)).fetchone()
        first = time.perf_counter() - began if row and row[0] > before else 0.0
        time.sleep(0.002)
    while True:
        row = connection.execute(query).fetchone()
        done = row[0] - before if row else 0
        if done >= occurrences:
            return first, time.perf_counter() - began
        assert time.perf_counter() - began < 300, f"only {done} of {occurrences} have succeeded"
        time.sleep(min(0.5, max(0.01, (occurrences - done) / 40_000)))


def _wal(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
    row = connection.execute(
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
    ).fetchone()
    assert row is not None
    return row[0]


def cpu_s(pid: int) -> float:
    """User and system seconds of a process (fields 14 and 15 of /proc/PID/stat, in ticks)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def idle_cpu_s_per_minute(settings: Settings, *, logs: Path, seconds: float = 30.0) -> float:
    """CPU seconds a minute of the server while a scanner and a worker have nothing to do."""
    with ExitStack() as stack:
        _start(stack, "scanner", ["scanner"], settings, logs)
        _start(stack, "worker", ["worker", "horolog.interface.samples:worker"], settings, logs)
        connection = stack.enter_context(psycopg.connect(settings.database_url(), autocommit=True))
        time.sleep(SETTLING_S)
        before = postgres_cpu_s(connection)
        time.sleep(seconds)
        return (postgres_cpu_s(connection) - before) * 60 / seconds


def _disk_bytes(connection: psycopg.Connection[tuple[Any, ...]], namespace: str) -> int:
    row = connection.execute(_SIZE, (namespace,)).fetchone()
    assert row is not None
    return row[0]


def _vacuum(connection: psycopg.Connection[tuple[Any, ...]], namespace: str) -> None:
    for table in ("occurrence_events", "job_events", "executions", "next_runs", "jobs", "chain"):
        connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(namespace, table)))


def _nats_cpu_s() -> float:
    return sum(
        cpu_s(int(entry.name))
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _name(entry) == "nats-server"
    )


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def postgres_cpu_s(connection: psycopg.Connection[tuple[Any, ...]]) -> float:
    """CPU seconds of all processes of the server: our own connection's among them, and those that
    have ended (fields 16 and 17 of the first process)."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    stat = Path(f"/proc/{row[0]}/stat").read_text().rpartition(")")[2].split()
    postmaster = stat[1]
    ended = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    total = (int(ended[13]) + int(ended[14])) / 100
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[1] == postmaster:
                total += (int(fields[11]) + int(fields[12])) / 100
    return total
