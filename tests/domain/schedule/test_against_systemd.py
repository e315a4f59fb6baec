"""Differential: ``systemd-analyze calendar``, where the machine has it.

systemd skips a time in a gap and takes the first pass of a fold, which is ``gap="skip"`` here.
It reads the zone files of the system, so only zones are asked whose rules have long been the same.
Its expressions with every hour pause for the second pass of a fold; ``stars="fixed"`` says that.
"""

import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from horolog.domain.schedule import Cron

ANALYZE = shutil.which("systemd-analyze")

pytestmark = pytest.mark.skipif(ANALYZE is None, reason="no systemd-analyze on this machine")


def theirs(spec: str, after: datetime, n: int) -> list[datetime]:
    asked = after.strftime("%Y-%m-%d %H:%M:%S UTC")
    told = subprocess.run(
        [str(ANALYZE), "calendar", f"--iterations={n}", f"--base-time={asked}", spec],
        env={"TZ": "UTC", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = (line.partition(": ")[2] for line in told.splitlines())
    return [
        datetime.strptime(line, "%a %Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
        for line in lines
        if line.endswith(" UTC") and line[:3].isalpha()
    ]


@pytest.mark.parametrize("month", [3, 4, 9, 10, 11])
@pytest.mark.parametrize(
    "zone",
    ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo"],
)
def test_systemd_fires_when_gaps_are_skipped_and_folds_taken_once(zone: str, month: int) -> None:
    after = datetime(2027, month, 1, 12, tzinfo=UTC)
    for cron, spec in (
        ("30 2 * * *", "*-*-* 02:30:00"),
        ("0 0 * * *", "*-*-* 00:00:00"),
        ("45 1 * * 0", "Sun *-*-* 01:45:00"),
        ("*/20 1-2 * * *", "*-*-* 01..02:00/20:00"),
    ):
        n = 40
        schedule = Cron(cron, zone, gap="skip", fold="first", stars="fixed")
        fires = [fire.at for fire in schedule.upcoming(after, n)]
        assert fires == theirs(f"{spec} {zone}", after, n), f"{cron} in {zone}"
