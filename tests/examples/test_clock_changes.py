"""The example of a year's clock changes runs, and the log's account is right."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "through_both_clock_changes.py"


def test_jobs_go_through_both_clock_changes_and_the_log_accounts_for_it() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    told = [line.partition("  ")[2].strip() for line in done.stdout.splitlines()]
    said = done.stdout
    assert "07:00Z  Sun 14 Mar 03:00 EDT  02:30 does not exist; ran after the gap" in said
    assert "05:30Z  Sun 07 Nov 01:30 EDT  01:30 happens twice; this is the first" in said
    spring = [line for line in told if "Sun 14 Mar" in line and "02:" in line.split("  ")[-1]]
    assert spring == [line for line in spring if "does not exist" in line]
    autumn = [line for line in told if "Sun 07 Nov 01:" in line]
    assert len(autumn) == 5, "once for the fixed time, four times as time elapses"
    assert "241 runs in 241 days: half past two, which one night does not have" in said
    assert "241 runs in 241 days: half past one, which one night has twice" in said
    assert "2410 of 2410 occurrences succeeded, 0 violations" in said
    assert done.stderr == ""
