"""Which log of its namespace a database is, as it says itself: what the settings are held against.

Without it two URLs in another order would send the commands of one job to two logs, and a scanner
that knows of one log would publish its runs where nobody looks for them.
"""

from typing import NamedTuple
from uuid import UUID

from horolog.application.several_logs.place import LogPlace
from horolog.domain.errors import InvalidSetting


class Recorded(NamedTuple):
    """What was fixed when the namespace was created. ``set_id`` is the same in all of its logs."""

    log: int
    logs: int
    set_id: UUID
    partitions: int


def check_recorded(
    recorded: Recorded, place: LogPlace, namespace: str, set_id: UUID | None = None
) -> None:
    """Raises ``InvalidSetting`` unless the database is at ``place``, and of the set ``set_id``."""
    found = LogPlace(recorded.log, recorded.logs)
    if found != place:
        raise InvalidSetting(
            f"HOROLOG_DATABASE_URL: the database that is named as {place} is {found} of namespace"
            f" {namespace!r}: name all of its logs, in their order (log 0 first); their number was"
            " fixed when the namespace was created"
        )
    if set_id is not None and recorded.set_id != set_id:
        raise InvalidSetting(
            f"HOROLOG_DATABASE_URL: the database that is named as {place} belongs to another"
            f" installation of namespace {namespace!r} than log 0 does"
        )
