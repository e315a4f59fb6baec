"""The later steps of a newcomer's walk; `make walk` takes all of them, with nothing shortened."""

from pathlib import Path

from tests.acceptance import walk
from tests.acceptance.conftest import Horolog

SOON = ["--set", "lease_s=2"]
"""For scanners: the partitions of a lost machine are taken over after so long."""


def test_the_log_says_who_paused_a_job_last_week(horolog: Horolog) -> None:
    walk.last_week(horolog)


def test_a_job_outlives_one_of_three_machines(
    horolog: Horolog, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    settings = {
        name: value for name, value in horolog.environment.items() if name.startswith("HOROLOG_")
    }
    walk.three_machines(tmp_path, settings, clean_environment, SOON)
