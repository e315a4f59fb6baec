"""The few pauses of the system that are constants, stretched with the tempo of a plan.

They only say how soon something is looked at again. Left as they are, a plan of days would consist
of looks at a lane that stays full for hours.
"""

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from horolog.application.projecting import running
from horolog.application.scanner import (
    claiming,
    headroom,
    lanes,
    looking,
    publishing,
    republishing,
    serving,
    sweep,
)
from horolog.domain import firing

PAUSES: tuple[tuple[ModuleType, str], ...] = (
    (serving, "SURVEY_S"),
    (lanes, "REFUSED_PAUSE_S"),
    (lanes, "UNTOLD_PAUSE_S"),
    (headroom, "LOOK_S"),
    (headroom, "LONGEST_LOOK_S"),
    (publishing, "FIRST_PAUSE_S"),
    (republishing, "FULL_PAUSE_S"),
    (firing, "WAIT_S"),
    (running, "STAND_BY_S"),
    (claiming, "CONFLICT_PAUSE_US"),
)


PAGES: tuple[tuple[ModuleType, str, int], ...] = (
    (sweep, "SMALLEST_PAGE", 2),
    (republishing, "PAGE", 2),
    (looking, "SCAN_PAGE", 3),
)
"""Pages so small that there is always another one."""


@contextmanager
def stretched(tempo: float) -> Generator[None]:
    """Within it the pauses are ``tempo`` times as long, and pages are small."""
    sizes = [getattr(module, name) for module, name, _ in PAGES]
    before = [getattr(module, name) for module, name in PAUSES]
    try:
        for (module, name), value in zip(PAUSES, before, strict=True):
            setattr(module, name, type(value)(value * tempo))
        for module, name, size in PAGES:
            setattr(module, name, size)
        yield
    finally:
        for (module, name), value in zip(PAUSES, before, strict=True):
            setattr(module, name, value)
        for (module, name, _), size in zip(PAGES, sizes, strict=True):
            setattr(module, name, size)
