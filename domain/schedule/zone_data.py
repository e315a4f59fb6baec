"""Zones by their IANA names, read from one source: the ``tzdata`` package.

``zoneinfo`` looks at the system's copy first, which may be a year older than the package; then two
machines compute two fire times for one occurrence. Nothing here reads the system's copy, so the
answer depends on the version of one dependency, which ``tzdata_version`` names.
"""

from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from io import BytesIO
from zoneinfo import ZoneInfo

from horolog.domain.errors import InvalidSchedule

LONGEST_NAME = 64
"""Characters; no zone has a longer name, and a longer value is refused before it is compared."""


def tzdata_version() -> str:
    """The release of the tz database that every fire time is computed from, such as ``2026f``."""
    return str(import_module("tzdata").IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """The names of all zones and links of the tz database, as the package lists them."""
    return frozenset((files("tzdata") / "zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of this name; raises ``InvalidSchedule`` with the nearest names if there is none.

    Names are taken to the letter: ``america/new_york`` is refused, as it would be on any system
    whose files have case.
    """
    return ZoneInfo.from_file(BytesIO(zone_bytes(name)), key=name)


def zone_bytes(name: str) -> bytes:
    """The zone's TZif file (RFC 8536); raises ``InvalidSchedule`` for an unknown name."""
    if name not in zone_names():
        raise InvalidSchedule(_unknown(name))
    return (files("tzdata") / "zoneinfo").joinpath(*name.split("/")).read_bytes()


def _unknown(name: str) -> str:
    if not name.strip():
        return "zone: empty; give an IANA name, such as 'Europe/Berlin' or 'UTC'"
    shown = repr(name[:LONGEST_NAME])
    near = _nearest(name) if len(name) <= LONGEST_NAME else []
    hint = " or ".join(near) if near else "an IANA name, such as 'Europe/Berlin' or 'UTC'"
    return f"zone: {shown} is not in the tz database ({tzdata_version()}); did you mean {hint}?"


def _nearest(name: str) -> list[str]:
    spelled = name.strip().replace(" ", "_").casefold()
    by_lower = {known.casefold(): known for known in zone_names()}
    if spelled in by_lower:
        return [by_lower[spelled]]
    cities = sorted(known for low, known in by_lower.items() if low.split("/")[-1] == spelled)
    if cities:
        return cities[:3]
    if len(spelled) <= 4:
        return []  # an abbreviation is shared by many zones; none is nearer than another
    return [by_lower[low] for low in get_close_matches(spelled, sorted(by_lower), 3, 0.6)]
