"""Zones come from the tzdata package alone, and a name that is none is met with the nearest."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from horolog.domain.errors import InvalidSchedule
from horolog.domain.schedule import Cron, tzdata_version, zone_names


def test_the_version_is_that_of_the_package() -> None:
    assert tzdata_version()[:4].isdigit()
    assert len(tzdata_version()) == 5


def test_the_systems_zone_files_are_never_read() -> None:
    """In a process whose system has other rules: the search path of zoneinfo is a trap."""
    program = (
        "import zoneinfo\n"
        "def trap(*path): raise AssertionError(path)\n"
        "zoneinfo._common.load_tzdata = trap\n"
        "zoneinfo._tzpath.find_tzfile = trap\n"
        "from datetime import UTC, datetime\n"
        "from horolog.domain.schedule import Cron\n"
        "after = datetime(2027, 1, 10, tzinfo=UTC)\n"
        "fire = Cron('0 9 * * *', 'America/Vancouver').next_after(after)\n"
        "print(fire.at.hour)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "16"  # permanent -07 since 2026b


def test_all_names_can_be_used() -> None:
    after = datetime(2027, 1, 1, tzinfo=UTC)
    assert len(zone_names()) > 590
    assert all(Cron("0 9 * * *", name).next_after(after) for name in zone_names())


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc ", "UTC"),
        ("", "an IANA name|give an IANA name"),
        ("/etc/passwd", "an IANA name"),
        ("Europe/../Europe/Berlin", "did you mean"),
        ("x" * 100_000, "an IANA name"),
        ("Europe/Berlin\0", "did you mean"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InvalidSchedule, match=near) as refusal:
        Cron("0 9 * * *", name)
    assert len(str(refusal.value)) < 300
