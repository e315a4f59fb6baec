"""The few pauses of the system that are constants, stretched with the tempo of a plan.

They only say how soon something is looked at again. Left as they are, a plan of days would consist
of looks at a lane that stays full for hours.
"""

from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from horolog.application.scanner import claiming, headroom, lanes, publishing, republishing, serving
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
    (claiming, "CONFLICT_PAUSE_US"),
)


@contextmanager
def stretched(tempo: float) -> Generator[None]:
    """Within it the pauses are ``tempo`` times as long."""
    before = [getattr(module, name) for module, name in PAUSES]
    try:
        for (module, name), value in zip(PAUSES, before, strict=True):
            setattr(module, name, type(value)(value * tempo))
        yield
    finally:
        for (module, name), value in zip(PAUSES, before, strict=True):
            setattr(module, name, value)
