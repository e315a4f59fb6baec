"""A step of a newcomer's walk that nothing else takes; `make walk` takes all of them."""

from tests.acceptance import walk
from tests.acceptance.conftest import Horolog


def test_the_log_says_who_paused_a_job_last_week(horolog: Horolog) -> None:
    walk.last_week(horolog)
