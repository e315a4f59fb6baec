"""Retention: occurrences that have long been finished leave the log, month by month.

A month of occurrences is a partition of the log and one of the execution log. When its whole range
is old enough it is written to an archive, and both partitions are dropped. Streams of jobs and
partitions stay for ever, and so does what is unresolved.

Without care a rebuild would fire again what it no longer finds. So the log itself says, before
anything is dropped, which range left, what of it was kept, and where the schedules stood.
"""

from horolog.application.retention.ports import Archived, Month
from horolog.application.retention.pruning import MonthOutcome, RetentionOutcome, prune

__all__ = ["Archived", "Month", "MonthOutcome", "RetentionOutcome", "prune"]
