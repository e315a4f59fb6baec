"""From the JSON form back to a schedule."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule.calendar import Calendar
from horolog.domain.schedule.cron import Cron
from horolog.domain.schedule.every import Every
from horolog.domain.schedule.once import Once
from horolog.domain.schedule.union import Union

Schedule = Annotated[Once | Every | Cron | Calendar | Union, Field(discriminator="kind")]
"""Any schedule; as the type of a pydantic field it is told apart by ``kind``."""

_KINDS: Final = {"once": Once, "every": Every, "cron": Cron, "calendar": Calendar, "union": Union}


def schedule_from_json(data: Mapping[str, Any]) -> Once | Every | Cron | Calendar | Union:
    """Reads what ``to_json`` wrote; raises ``InvalidSchedule`` for anything else.

    A later version of a kind gets a name of its own (``cron.2``), so an older release refuses what
    it cannot read.
    """
    kind = data.get("kind")
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise InvalidSchedule(
            f"kind: {kind!r} is not a kind of schedule; known are {', '.join(_KINDS)}"
        )
    try:
        return known(**data)
    except TypeError as error:
        raise InvalidSchedule(f"{kind}: {error}") from None
