"""Retention wired to a namespace: ``horolog retention`` and the same from Python."""

from pathlib import Path
from typing import Literal
from uuid import uuid4

from horolog.application.retention import RetentionOutcome, prune
from horolog.application.retention.ports import Archive
from horolog.application.retention.pruning import Told
from horolog.infrastructure.archive.jsonl import JsonLinesArchive
from horolog.infrastructure.archive.parquet import ParquetArchive
from horolog.infrastructure.postgres.clock import PostgresClock
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.retention.months import PostgresMonths
from horolog.interface.settings import Settings

Format = Literal["jsonl", "parquet"]


def retain(
    settings: Settings,
    *,
    older_than_days: float,
    archive: Path | None = None,
    archive_format: Format = "jsonl",
    dry_run: bool = False,
    told: Told | None = None,
) -> RetentionOutcome:
    """Prunes finished occurrences of months that are older as a whole; see
    :mod:`horolog.application.retention`.

    ``archive`` is the folder that their events are written to first. Raises ``InvalidSetting``,
    ``NotAllowed`` while another process prunes or rebuilds, ``StoreUnavailable``.
    """
    database = Database(settings.database_url(), settings.namespace)
    try:
        check_schema(database)
        return prune(
            PostgresMonths(database),
            older_than_days=older_than_days,
            now=PostgresClock(database).now(),
            drawn=uuid4,
            actor=settings.actor,
            archive=None if archive is None else _archive(archive, archive_format),
            dry_run=dry_run,
            told=told,
        )
    finally:
        database.close()


def _archive(folder: Path, archive_format: Format) -> Archive:
    if archive_format == "parquet":
        return ParquetArchive(folder)
    return JsonLinesArchive(folder)
