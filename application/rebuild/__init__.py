"""The read models from the log: verify them, build them anew, and go back, while the system runs.

Every row of the read models follows from the log. After a bug, a bad migration or a stray UPDATE
they are compared with it and put right without stopping anything: no fire is missed or doubled, and
no append waits longer than some milliseconds.
"""

from horolog.application.rebuild.ports import Difference, Run
from horolog.application.rebuild.progress import Progress
from horolog.application.rebuild.rebuilding import (
    Outcome,
    rebuild,
    roll_back,
    verify_projections,
)
from horolog.application.rebuild.skipping import skip_event

__all__ = [
    "Difference",
    "Outcome",
    "Progress",
    "Run",
    "rebuild",
    "roll_back",
    "skip_event",
    "verify_projections",
]
