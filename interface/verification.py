"""``horolog verify`` wired to a namespace's log."""

import json
from datetime import UTC, datetime
from pathlib import Path

from horolog.application.verify import Report, verify
from horolog.application.verify.hash_chain import ChainReport, Checkpoint, checkpoint, verify_chain
from horolog.application.verify.whole_log import Progress
from horolog.domain.errors import InvalidSetting
from horolog.infrastructure.postgres.database import Database
from horolog.infrastructure.postgres.hash_chain import PostgresChain
from horolog.infrastructure.postgres.log_position import log_position
from horolog.infrastructure.postgres.log_scan import PostgresLogScan
from horolog.infrastructure.postgres.migrate import check_schema
from horolog.infrastructure.postgres.namespace import check_place
from horolog.interface.settings import Settings
from horolog.interface.verification_shares import shares_for, verified_in_shares


def verify_log(
    settings: Settings, *, progress: Progress | None = None, shares: int | None = None
) -> Report:
    """Checks the whole log against the invariants; see :mod:`horolog.application.verify`.

    A long log is checked by several processes at once, ``shares`` of them, or as the machine has
    processors. Raises ``StoreUnavailable``, ``SchemaMissing`` or ``SchemaTooNew``.
    """
    database = Database(settings.database_url(), settings.namespace)
    try:
        check_schema(database)
        check_place(database, settings.place)
        shares = shares or shares_for(log_position(database))
        if shares == 1:
            return verify(PostgresLogScan(database), progress=progress)
    finally:
        database.close()
    return verified_in_shares(settings, shares, progress=progress)


def verify_log_chain(
    settings: Settings,
    *,
    against: Path | None = None,
    save: Path | None = None,
    progress: Progress | None = None,
) -> ChainReport:
    """Computes the hash chain of the log again; see :mod:`horolog.application.verify.hash_chain`.

    ``against`` is the file of an earlier checkpoint, ``save`` where to write one of now. Raises
    ``InvalidSetting`` for a file that cannot be used, and as :func:`verify_log`.
    """
    earlier = None if against is None else _read_checkpoint(against, settings.namespace)
    database = Database(settings.database_url(), settings.namespace)
    try:
        check_schema(database)
        check_place(database, settings.place)
        report = verify_chain(PostgresChain(database), against=earlier, progress=progress)
    finally:
        database.close()
    if save is not None and report.ok:
        _write_checkpoint(save, checkpoint(report, settings.namespace, datetime.now(UTC)))
    return report


def _read_checkpoint(file: Path, namespace: str) -> Checkpoint:
    try:
        stated = json.loads(file.read_text())
        found = Checkpoint(
            stated["namespace"],
            int(stated["position"]),
            stated["digest"],
            datetime.fromisoformat(stated["taken_at"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidSetting(f"{file} is no checkpoint of a log: {error}") from error
    if found.namespace != namespace:
        raise InvalidSetting(
            f"{file} is a checkpoint of namespace {found.namespace!r}, not of {namespace!r}"
        )
    return found


def _write_checkpoint(file: Path, taken: Checkpoint) -> None:
    document = {
        "namespace": taken.namespace,
        "position": taken.position,
        "digest": taken.digest,
        "taken_at": taken.taken_at.isoformat(),
    }
    try:
        file.write_text(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise InvalidSetting(f"the checkpoint cannot be written to {file}: {error}") from error
