"""The next-run index against the log, in one snapshot of both (invariant 6).

Jobs are merged in the order of ids, a row of one beside a row of the other, so nothing is
collected; occurrences are compared with what the fold has left unfinished.
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

from horolog.application.verify.lives import Life
from horolog.application.verify.ports import IndexedRow, LoggedJob, Snapshot
from horolog.application.verify.report import Place, Report
from horolog.application.verify.share import WHOLE, Share
from horolog.domain.ids import occurrence_id

BATCH = 1_000


def check_index(
    snapshot: Snapshot, unfinished: Mapping[bytes, Life], report: Report, share: Share = WHOLE
) -> None:
    """Reports every row that is missing, too many, or at another version than the log."""
    _check_jobs(snapshot, report, share)
    _check_occurrences(snapshot, unfinished, report, share)


def _check_jobs(snapshot: Snapshot, report: Report, share: Share) -> None:
    right: list[IndexedRow] = []
    jobs = (job for job in snapshot.jobs() if share.owns(job.id.bytes))
    rows = (row for row in snapshot.indexed_jobs() if share.owns(row.id.bytes))
    for job, row in _beside(jobs, rows):
        if job is not None and job.events != job.version:
            report.violate(
                1,
                f"job {job.id} has {job.events} events and is at version {job.version}",
                Place(job.id.bytes, job.version),
            )
        if job is None or not job.active:
            if row is not None:
                report.violate(
                    6,
                    f"job {row.id} is in the index and not active",
                    Place(row.id.bytes, row.version),
                )
        elif row is None:
            report.violate(
                6, f"job {job.id} is active and not in the index", Place(job.id.bytes, job.version)
            )
        elif row.version != job.version or row.job_id != job.id:
            report.violate(
                6,
                f"job {job.id} is in the index at version {row.version}, and in the log at"
                f" {job.version}",
                Place(job.id.bytes, job.version),
            )
        else:
            right.append(row)
            if len(right) >= BATCH:
                _check_fire_times(snapshot, right, report)
    _check_fire_times(snapshot, right, report)


def _check_fire_times(snapshot: Snapshot, rows: list[IndexedRow], report: Report) -> None:
    """No job may wait for a fire time that has been fired: it would be fired twice."""
    ids = {occurrence_id(row.id, row.fire_time): row for row in rows}
    for identity in snapshot.started(list(ids)):
        row = ids[identity]
        report.violate(
            6,
            f"job {row.id} waits in the index for {row.fire_time.isoformat()}, which was fired",
            Place(identity.bytes, 1),
        )
    rows.clear()


def _check_occurrences(
    snapshot: Snapshot, unfinished: Mapping[bytes, Life], report: Report, share: Share
) -> None:
    seen: set[bytes] = set()
    for row in snapshot.indexed_occurrences():
        if not share.owns(row.id.bytes):
            continue
        life = unfinished.get(row.id.bytes)
        if life is None:
            report.violate(
                6,
                f"occurrence {row.id} is in the index, and by the log it is not unfinished",
                Place(row.id.bytes, row.version),
            )
            continue
        seen.add(row.id.bytes)
        for what, indexed, logged in (
            ("version", row.version, life.version),
            ("state", row.state, life.state),
            ("attempt", row.attempt, life.attempt),
            ("job", row.job_id, life.job and UUID(bytes=life.job)),
        ):
            if indexed != logged:
                report.violate(
                    6,
                    f"occurrence {row.id} is in the index with {what} {indexed}, and in the log"
                    f" with {logged}",
                    Place(row.id.bytes, life.version, life.last or None),
                )
        if life.due is not None and row.due_at < life.due:
            report.violate(
                6,
                f"occurrence {row.id} is due in the index at {row.due_at.isoformat()}, before"
                f" {life.due.isoformat()}",
                Place(row.id.bytes, life.version, life.last or None),
            )
    for identity, life in unfinished.items():
        if identity not in seen:
            report.violate(
                6,
                f"occurrence {UUID(bytes=identity)} is {life.state} and not in the index",
                Place(identity, life.version, life.last or None),
            )


def _beside(
    jobs: Iterator[LoggedJob], rows: Iterator[IndexedRow]
) -> Iterator[tuple[LoggedJob | None, IndexedRow | None]]:
    """Both in the order of ids, each with the other of the same id or with ``None``."""
    job, row = next(jobs, None), next(rows, None)
    while job is not None or row is not None:
        if row is None or (job is not None and job.id < row.id):
            yield job, None
            job = next(jobs, None)
        elif job is None or row.id < job.id:
            yield None, row
            row = next(rows, None)
        else:
            yield job, row
            job, row = next(jobs, None), next(rows, None)
