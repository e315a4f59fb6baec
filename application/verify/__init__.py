"""Checking the whole log against the invariants, independently of the code that wrote it.

The checker has a fold of its own: one that shared the deciders' would share their mistakes. It
reads the log once in its order and remembers what is unfinished and where the schedules of living
jobs stand, so its memory does not grow with the log. (What a schedule is, it takes from the domain:
that schedules are right is shown elsewhere.) It may run beside a working system: what it compares
with the index is a snapshot of both.

    1  streams have consecutive versions; the log's order is total            lives, jobs
    2  at most one Succeeded, and nothing after it                            lives
    3  every Attempted follows its Claimed, every outcome its Attempted       lives
    4  tokens only grow, and no claim bears an old one                        fences
    5  every fire time ran or is accounted for                                fire_times
    6  the index holds what is unfinished, and nothing else                   index
    7  no retry before its time, no attempt beyond the policy                 lives, budgets
"""

from horolog.application.verify.report import Evidence, Report, Violation
from horolog.application.verify.whole_log import verify

__all__ = ["Evidence", "Report", "Violation", "verify"]
