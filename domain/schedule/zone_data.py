"""Zones by their IANA names, read from one source: the ``tzdata`` package.

``zoneinfo`` looks at the system's copy first, which may be a year older than the package; then two
machines compute two fire times for one occurrence. Nothing here reads the system's copy, so the
answer depends on the version of one dependency, which ``tzdata_version`` names.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from importlib.resources import files
from io import BytesIO
from zoneinfo import ZoneInfo

from horolog.domain.errors import InvalidSchedule

LONGEST_NAME = 64
"""Characters; no zone has a longer name, and a longer value is refused before it is compared."""


@dataclass(slots=True)
class _Release:
    """What is read instead of the package: in tests of what a new release changes, and never else.

    ``caches`` are emptied when that begins and ends: whatever was computed from a zone's file.
    """

    version: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    caches: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


_release = _Release()


@contextmanager
def other_release(version: str, changed: Mapping[str, bytes]) -> Generator[None]:
    """For tests: zone data of another release, in which the zones ``changed`` have these files.

    Schedules that were read before keep no zone's rules, so they follow.
    """
    before = _release.version, _release.files
    _set_release(version, changed)
    try:
        yield
    finally:
        _set_release(*before)


def forget_with_release(clear: Callable[[], None]) -> None:
    """Has ``clear`` called when the zone data is another: for caches of what comes from it."""
    _release.caches.append(clear)


def _set_release(version: str, files: Mapping[str, bytes]) -> None:
    _release.version, _release.files = version, files
    zone.cache_clear()
    for clear in _release.caches:
        clear()


def tzdata_version() -> str:
    """The release of the tz database that every fire time is computed from, such as ``2026f``."""
    return _release.version or _packaged_version()


@cache
def _packaged_version() -> str:
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
    if name in _release.files:
        return _release.files[name]
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
